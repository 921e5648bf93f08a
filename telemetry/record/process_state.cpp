// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/process_state.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "telemetry/record/layout.hpp"

namespace bestride::inline telemetry {
namespace {

/// Reads a small file into `text`, terminated by zero. Returns its length; 0 if it can't be read.
template <std::size_t size>
std::size_t read_file(const char* path, char (&text)[size]) noexcept {
  text[0] = '\0';
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t length = read(file, text, size - 1);
  close(file);
  if (length <= 0) return 0;
  text[length] = '\0';
  return static_cast<std::size_t>(length);
}

void task_path(char (&path)[64], int pid, int tid, const char* name) noexcept {
  if (tid == 0)
    std::snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  else
    std::snprintf(path, sizeof path, "/proc/%d/task/%d/%s", pid, tid, name);
}

/// Calls visit(number, word) for the fields of /proc/PID/stat from the third on. False if there is no such process.
template <class Visit>
bool each_stat_field(int pid, int tid, Visit visit) noexcept {
  char path[64], text[1024];
  task_path(path, pid, tid, "stat");
  if (read_file(path, text) == 0) return false;
  // The second field is the program's name in parentheses and may contain any character.
  char* const at = std::strrchr(text, ')');
  if (!at) return false;
  int field = 2;
  char* rest = nullptr;
  for (char* word = strtok_r(at + 1, " \n", &rest); word; word = strtok_r(nullptr, " \n", &rest)) visit(++field, word);
  return true;
}

/// The number after `name` in a file of lines "name: number"; 0 if there is none.
std::uint64_t number_after(const char* text, const char* name) noexcept {
  const std::size_t length = std::strlen(name);
  for (const char* line = text; line && *line; line = std::strchr(line, '\n') ? std::strchr(line, '\n') + 1 : nullptr)
    if (std::strncmp(line, name, length) == 0) return std::strtoull(line + length, nullptr, 10);
  return 0;
}

/// Clock ticks that the kernel adds to all start times that this process reads, because it is in a time namespace.
std::uint64_t start_time_offset() noexcept {
  static const std::uint64_t offset = [] {
    char text[256];
    if (read_file("/proc/self/timens_offsets", text) == 0) return std::uint64_t{0};
    const char* const line = std::strstr(text, "boottime");
    const long long seconds = line ? std::strtoll(line + std::strlen("boottime"), nullptr, 10) : 0;
    return static_cast<std::uint64_t>(seconds * sysconf(_SC_CLK_TCK));
  }();
  return offset;
}

/// True if there is no such thread, or if it has begun to end.
bool is_exiting(int pid, int tid) noexcept {
  constexpr unsigned long exiting = 4;  // PF_EXITING of the kernel
  bool lives = false;
  each_stat_field(pid, tid, [&](int field, const char* word) {
    if (field == 9) lives = (std::strtoul(word, nullptr, 10) & exiting) == 0;
  });
  return !lives;
}

}  // namespace

ProcessStatus process_status(int pid, int tid) noexcept {
  ProcessStatus status;
  status.exists = each_stat_field(pid, tid, [&](int field, const char* word) {
    if (field == 3) status.state = *word;
    if (field == 4) status.parent = std::atoi(word);
    if (field == 14 || field == 15) status.cpu_time += std::strtoull(word, nullptr, 10);
    if (field == 22) status.start_time = std::strtoull(word, nullptr, 10) - start_time_offset();
  });
  return status;
}

ProcessUse process_use(int pid) noexcept {
  ProcessUse use;
  use.cpu_seconds = static_cast<double>(process_status(pid).cpu_time) / static_cast<double>(sysconf(_SC_CLK_TCK));
  char path[64], text[4096];
  task_path(path, pid, 0, "io");
  if (read_file(path, text) > 0)
    for (const char* const count : {"rchar:", "wchar:", "read_bytes:", "write_bytes:"})
      use.io_bytes += number_after(text, count);
  task_path(path, pid, 0, "status");
  if (read_file(path, text) > 0) {
    use.sleeps = number_after(text, "voluntary_ctxt_switches:");
    use.tracer = static_cast<int>(number_after(text, "TracerPid:"));
  }
  task_path(path, pid, 0, "schedstat");
  unsigned long long queued_ns = 0;
  const bool known = read_file(path, text) > 0 && std::sscanf(text, "%*u %llu", &queued_ns) == 1;
  use.queued_seconds = known ? static_cast<double>(queued_ns) / 1e9 : -1;
  return use;
}

bool is_ending(int pid) noexcept {
  if (!is_exiting(pid, 0)) return false;
  // The initial thread may end before others, by pthread_exit().
  char path[64];
  task_path(path, pid, 0, "task");
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir(path), &closedir);
  if (!threads) return true;
  while (const dirent* const entry = readdir(threads.get()))
    if (const int tid = std::atoi(entry->d_name); tid > 0 && !is_exiting(pid, tid)) return false;
  return true;
}

int wait_status_of_zombie(int pid) noexcept {
  char state = '?';
  int status = -1;
  each_stat_field(pid, 0, [&](int field, const char* word) {
    if (field == 3) state = *word;
    if (field == 52 && (state == 'Z' || state == 'X')) status = std::atoi(word);
  });
  return status;
}

int wait_status_of_ended(int pidfd) noexcept {
  // struct pidfd_info of linux/pidfd.h as it was first published; older headers lack it.
  struct Info {
    std::uint64_t mask, cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
  };
  static_assert(sizeof(Info) == 64);
  constexpr std::uint64_t exit_code_known = 1 << 3;  // PIDFD_INFO_EXIT
  constexpr unsigned long get_info = _IOWR(0xff, 11, Info);
  Info info{};
  info.mask = exit_code_known;
  return ioctl(pidfd, get_info, &info) == 0 && (info.mask & exit_code_known) != 0 ? info.exit_code : -1;
}

std::string waiting_channel(int pid, int tid) {
  char path[64], text[128];
  task_path(path, pid, tid, "wchan");
  if (read_file(path, text) == 0 || std::strcmp(text, "0") == 0) return "";
  return text;
}

std::uint64_t own_start_time() noexcept { return process_status(getpid()).start_time; }

std::uint64_t own_pid_namespace() noexcept {
  struct stat status {};
  return stat("/proc/thread-self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

void read_boot_id(char (&id)[40]) noexcept {
  char text[64];
  if (read_file("/proc/sys/kernel/random/boot_id", text) == 0) text[0] = '\0';
  text[std::strcspn(text, "\n")] = '\0';
  std::snprintf(id, sizeof id, "%.39s", text);
}

bool is_visible(const RecordHeader& header) noexcept {
  return header.pid_namespace != 0 && header.pid_namespace == own_pid_namespace();
}

bool process_lives(const RecordHeader& header, int file) noexcept {
  char boot_id[40];
  read_boot_id(boot_id);
  const bool known = boot_id[0] != '\0' && header.boot_id[0] != '\0';
  if (known && std::strncmp(boot_id, header.boot_id, sizeof boot_id) != 0) return false;
  if (!is_visible(header)) {
    struct flock lock {};
    lock.l_type = F_RDLCK;
    return header.locked != 1 || fcntl(file, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  }
  const ProcessStatus status = process_status(header.pid);
  const bool ended = status.state == 'Z' || status.state == 'X';
  return status.exists && status.start_time == header.process_start && !(ended && is_ending(header.pid));
}

}  // namespace bestride::inline telemetry
