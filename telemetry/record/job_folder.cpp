// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/job_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file_size_limit.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

/// The process at the other end of the launcher's socket: Hydra's proxy, one per host and job. -1 if unknown.
int launcher_pid() noexcept {
  const char* const text = std::getenv("PMI_FD");
  if (!text || *text < '0' || *text > '9') return -1;
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(std::atoi(text), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : -1;
}

/// What errno says about a file or folder of records, with the remedy.
Error system_error(const std::string& what) {
  const char* remedy = "records need a /dev/shm to which this user can write";
  switch (errno) {
    case EFBIG: remedy = "316 KiB are needed for each rank (ulimit -f)"; break;
    case EMFILE:
    case ENFILE: remedy = "a record needs an open file (ulimit -n)"; break;
    case ENOSPC:
    case EDQUOT: remedy = "316 KiB are needed in /dev/shm for each rank"; break;
    case ENOENT: remedy = "mount a tmpfs at /dev/shm"; break;
    case ENOMEM: remedy = "316 KiB of memory are needed for each rank (ulimit -v)"; break;
    case EEXIST:
    case ELOOP:
    case ENOTDIR:
    case EPERM: remedy = "remove what is in its place"; break;
    default: break;
  }
  return {what + ": " + std::strerror(errno) + "; " + remedy};
}

/// Opens `parent`/`name`, which is created if it is missing. -1 with errno if it is not a folder of this user alone.
int open_private_folder(int parent, const char* name) noexcept {
  if (mkdirat(parent, name, 0700) != 0 && errno != EEXIST) return -1;
  const int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat status {};
  if (fstat(folder, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & 022) == 0) return folder;
  close(folder);
  errno = EPERM;
  return -1;
}

/// Closes a descriptor at the end of a scope.
struct Descriptor {
  int value;
  ~Descriptor() {
    if (value >= 0) close(value);
  }
};

/// Attempts to create a file in a folder that other ranks may remove.
constexpr int most_attempts = 100;

constexpr std::uint64_t initial_pid_namespace = 0xEFFFFFFC;  ///< PROC_PID_INIT_INO of Linux: fixed since 3.8

std::string user_folder() { return "bestride-" + std::to_string(geteuid()); }

bool ends_with(const char* text, const char* suffix) noexcept {
  const std::size_t length = std::strlen(text), end = std::strlen(suffix);
  return length >= end && std::strcmp(text + length - end, suffix) == 0;
}

/// Calls visit(name) for each entry of the open folder.
template <class Visit>
void for_each_entry(int folder, Visit visit) noexcept {
  const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const listing = again < 0 ? nullptr : fdopendir(again);
  if (!listing) {
    if (again >= 0) close(again);
    return;
  }
  while (const dirent* entry = readdir(listing))
    if (entry->d_name[0] != '.') visit(entry->d_name);
  closedir(listing);
}

/// True if the record's process has ended, and the file was last changed at least `seconds` ago.
bool is_stale(int folder, const char* name, double seconds) noexcept {
  // O_NONBLOCK: a FIFO in place of the file would make open() wait.
  const Descriptor file{openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.value < 0 || fstat(file.value, &status) != 0) return false;
  if (static_cast<double>(time(nullptr) - status.st_mtime) < seconds) return false;
  RecordHeader header;
  const bool whole = pread(file.value, static_cast<void*>(&header), sizeof header, 0) == sizeof header;
  return !whole || !process_lives(header, file.value);
}

void remove_stale_job(int parent, const char* name, double seconds) noexcept {
  const Descriptor job{openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (job.value < 0) return;
  bool all_stale = true;
  for_each_entry(job.value, [&](const char* file) {
    if (ends_with(file, record_suffix)) all_stale = all_stale && is_stale(job.value, file, seconds);
  });
  if (!all_stale) return;
  for_each_entry(job.value, [&](const char* file) {
    // A new job of that name may have begun.
    if (!ends_with(file, record_suffix) || is_stale(job.value, file, seconds)) unlinkat(job.value, file, 0);
  });
  unlinkat(parent, name, AT_REMOVEDIR);
}

/// Keeps the file open under a number above those that the launcher passed on. When a process ends, the kernel defers
/// the release of its files and runs the releases last in, first out (since Linux 4.3): descriptors from the highest
/// number on, and mappings, which are dropped first, last. So an observer that is notified when the record is closed
/// for writing knows of the end before the launcher can see that its connection is closed: in 400 of 400 ends, and in
/// 227 of 400 with the mapping alone.
void keep_open(int file) noexcept {
  for (const int lowest : {1000, 200})
    if (fcntl(file, F_DUPFD_CLOEXEC, lowest) >= 0) return;
}

/// Locks the file until this process has ended: the lock belongs to the open file, to which the mapping refers, too. It
/// tells processes of other pid namespaces that this one is alive. False if the kernel refuses.
bool lock_until_end(int file) noexcept {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

std::string records_folder() { return std::string(record_root) + "/" + user_folder(); }

std::string job_name(const std::string& launch) {
  // Hydra first: several of its jobs may run inside one Slurm step.
  if (const int proxy = launcher_pid(); proxy > 0) return "hydra-" + std::to_string(proxy);
  const char* const job = std::getenv("SLURM_JOB_ID");
  const char* const step = std::getenv("SLURM_STEP_ID");
  if (job && step) {
    std::string name = "slurm-" + std::string(job) + "." + step;
    for (char& c : name)
      if (c == '/') c = '_';
    return name.substr(0, 60);
  }
  // In a pid namespace of its own, each rank may have the same pid.
  if (!launch.empty()) {
    std::string name = launch.substr(0, 60);
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && std::strchr("-_.", c) == nullptr) c = '_';
    return name[0] == '.' ? "_" + name : name;
  }
  return "pid-" + std::to_string(getpid());
}

std::string record_name(int pid, std::uint64_t pid_namespace) {
  std::string name = std::to_string(pid);
  if (pid_namespace != 0 && pid_namespace != initial_pid_namespace) name += "-" + std::to_string(pid_namespace);
  return name + record_suffix;
}

Result<RecordFile*> create_record(const std::string& job, std::string* path) noexcept try {
  const std::string name = record_name(getpid(), own_pid_namespace());
  *path = records_folder() + "/" + job + "/" + name;
  if (!within_file_size_limit(record_file_bytes)) {
    errno = EFBIG;
    return system_error(*path);
  }
  const Descriptor root{open(record_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (root.value < 0) return system_error(record_root);
  const Descriptor user{open_private_folder(root.value, user_folder().c_str())};
  if (user.value < 0) return system_error(records_folder());
  Descriptor folder{-1}, file{-1};
  // Another rank may remove the folder while it is empty: as stale, or because it has removed its own record.
  for (int attempt = 0; file.value < 0; ++attempt) {
    if (folder.value >= 0) close(folder.value);
    folder.value = open_private_folder(user.value, job.c_str());
    if (folder.value < 0 && (errno != ENOENT || attempt == most_attempts))
      return system_error(records_folder() + "/" + job);
    if (folder.value < 0) continue;
    file.value = openat(folder.value, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file.value < 0 && ((errno != ENOENT && errno != EEXIST) || attempt == most_attempts))
      return system_error(*path);
    if (file.value < 0 && errno == EEXIST)
      unlinkat(folder.value, name.c_str(), 0);  // of an earlier process with this pid
  }
  unlinkat(folder.value, crash_path(name).c_str(), 0);
  // Allocated now: a write into a hole of a full /dev/shm would be a SIGBUS.
  if (const int error = posix_fallocate(file.value, 0, record_file_bytes)) {
    unlinkat(folder.value, name.c_str(), 0);
    errno = error;
    return system_error(*path);
  }
  void* const memory = mmap(nullptr, record_file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.value, 0);
  if (memory == MAP_FAILED) {
    unlinkat(folder.value, name.c_str(), 0);
    return system_error(*path);
  }
  keep_open(file.value);
  auto* const record = static_cast<RecordFile*>(memory);
  record->header.locked = lock_until_end(file.value) ? 1 : 0;
  return record;
} catch (...) {
  return Error{};
}

std::string crash_path(const std::string& record_path) {
  return record_path.substr(0, record_path.rfind('.')) + crash_suffix;
}

void remove_record(const std::string& path) noexcept {
  unlink(path.c_str());
  try {
    unlink(crash_path(path).c_str());
    if (const std::size_t slash = path.rfind('/'); slash != std::string::npos) rmdir(path.substr(0, slash).c_str());
  } catch (...) {
  }
}

void remove_stale_records(double seconds) noexcept try {
  const Descriptor root{open(record_root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (root.value < 0) return;
  const Descriptor user{openat(root.value, user_folder().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)};
  if (user.value < 0) return;
  int looked_at = 0;
  for_each_entry(user.value, [&](const char* name) {
    if (++looked_at <= 64) remove_stale_job(user.value, name, seconds);
  });
} catch (...) {
}

}  // namespace bestride::inline telemetry
