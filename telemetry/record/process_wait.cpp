// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/process_wait.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "telemetry/record/printable.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline telemetry {
namespace {

/// Of more descendants nothing is known, so they may do anything.
constexpr std::size_t most_children = 64, most_descriptors = 256;

std::string folder_of(int pid) { return "/proc/" + std::to_string(pid); }

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Calls visit(name) for the numbers among the entries of a folder, until it returns false.
template <class Visit>
void each_number(const std::string& folder, Visit visit) {
  DIR* const entries = opendir(folder.c_str());
  if (!entries) return;
  while (const dirent* const entry = readdir(entries))
    if (const int number = std::atoi(entry->d_name); (number > 0 || entry->d_name[0] == '0') && !visit(number)) break;
  closedir(entries);
}

std::vector<int> children_of(int pid) {
  std::vector<int> children;
  each_number(folder_of(pid) + "/task", [&](int tid) {
    std::istringstream list(content(folder_of(pid) + "/task/" + std::to_string(tid) + "/children"));
    for (int child = 0; list >> child;) children.push_back(child);
    return children.size() <= most_children;
  });
  return children;
}

std::string name_of(int pid, int tid) {
  std::string name = content(folder_of(pid) + "/task/" + std::to_string(tid) + "/comm");
  while (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

/// The thread in which UCX, through which MPI may communicate, serves connections; the program waits for nothing there.
bool is_of_transport(int pid, int tid) { return tid != pid && name_of(pid, tid) == "async"; }

bool sleeps_elsewhere(int pid, int tid) {
  // A thread that wakes up in between has no channel.
  return process_status(pid, tid).state == 'S' && !waits_for_this_host(waiting_channel(pid, tid)) &&
         process_status(pid, tid).state == 'S' && !is_of_transport(pid, tid);
}

std::string target_of(int pid, int descriptor) {
  char target[512];
  const std::string link = folder_of(pid) + "/fd/" + std::to_string(descriptor);
  const ssize_t length = readlink(link.c_str(), target, sizeof target);
  return {target, static_cast<std::size_t>(std::max<ssize_t>(length, 0))};
}

bool is_device(const std::string& target) {
  return target.starts_with("/dev/") && !target.starts_with("/dev/shm/") && target != "/dev/null" &&
         target != "/dev/zero" && target != "/dev/full" && !target.ends_with("random");
}

/// It has a connection or a device.
bool reaches_elsewhere(int pid) {
  std::size_t seen = 0;
  bool reaches = false;
  each_number(folder_of(pid) + "/fd", [&](int descriptor) {
    const std::string target = target_of(pid, descriptor);
    reaches = target.starts_with("socket:") || is_device(target) || ++seen > most_descriptors;
    return !reaches;
  });
  return reaches;
}

/// "standard input", "a pipe", "/tmp/input (FIFO)".
std::string descriptor_text(int pid, int descriptor) {
  if (descriptor == STDIN_FILENO) return "standard input";
  if (descriptor == STDOUT_FILENO) return "standard output";
  if (descriptor == STDERR_FILENO) return "standard error";
  std::string target = target_of(pid, descriptor);
  if (const std::string_view mark = " (deleted)"; target.ends_with(mark)) target.resize(target.size() - mark.size());
  if (target.empty()) return "descriptor " + std::to_string(descriptor);
  if (target.starts_with("pipe:")) return "a pipe";
  if (target.starts_with("socket:")) return "a socket";
  struct stat status {};
  const bool known = stat((folder_of(pid) + "/fd/" + std::to_string(descriptor)).c_str(), &status) == 0;
  return printable(target) + (known && S_ISFIFO(status.st_mode) ? " (FIFO)" : "");
}

/// Bytes at an address of another process; less than `size` if the next page can't be read, 0 if none can.
std::size_t read_memory(int pid, long long address, void* to, std::size_t size) {
  const int memory = open((folder_of(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (memory < 0) return 0;
  const ssize_t length = pread(memory, to, size, static_cast<off_t>(address));
  close(memory);
  return static_cast<std::size_t>(std::max<ssize_t>(length, 0));
}

/// " of /tmp/input (FIFO)", the path at an address of another process, relative to descriptor `folder`; "" if it can't
/// be read.
std::string path_text(int pid, int folder, long long address) {
  char text[512];
  const std::size_t length = read_memory(pid, address, text, sizeof text);
  const std::string path(text, strnlen(text, length));
  if (path.empty() || path.size() == length) return "";
  const std::string base = path[0] == '/'       ? "/root"
                           : folder == AT_FDCWD ? "/cwd/"
                                                : "/fd/" + std::to_string(folder) + "/";
  struct stat status {};
  const bool known = stat((folder_of(pid) + base + path).c_str(), &status) == 0;
  return " of " + printable(path) + (known && S_ISFIFO(status.st_mode) ? " (FIFO)" : "");
}

std::string child_text(int pid) {
  const std::string name = name_of(pid, pid);
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + printable(name) + ")");
}

/// The system call in which a thread is.
struct SystemCall {
  long number = -1;
  long long first = 0, second = 0, third = 0, fourth = 0;  ///< arguments
};
SystemCall system_call_of(int pid, int tid) {
  SystemCall call;
  // "running", or the number and the arguments in hexadecimal.
  std::istringstream words(content(folder_of(pid) + "/task/" + std::to_string(tid) + "/syscall"));
  std::string first, second, third, fourth;
  if (words >> call.number >> first >> second >> third >> fourth) {
    call.first = static_cast<long long>(std::strtoull(first.c_str(), nullptr, 16));
    call.second = static_cast<long long>(std::strtoull(second.c_str(), nullptr, 16));
    call.third = static_cast<long long>(std::strtoull(third.c_str(), nullptr, 16));
    call.fourth = static_cast<long long>(std::strtoull(fourth.c_str(), nullptr, 16));
  } else {
    call.number = -1;
  }
  return call;
}

bool waits_for_file_lock(const SystemCall& call) {
  return call.number == SYS_flock ||
         (call.number == SYS_fcntl && (call.second == F_SETLKW || call.second == F_OFD_SETLKW));
}

constexpr long long private_flag = 128;  // FUTEX_PRIVATE_FLAG

/// As pthread_mutex_lock() of glibc and musl waits, and nothing else that has a word of this value: the word in memory
/// is 2, or has the owner's tid and the bit for waiters.
bool waits_for_mutex(const SystemCall& call) {
  constexpr long long wait = 0, lock_pi = 6, lock_pi2 = 13;
  constexpr unsigned waiters = 0x80000000;  // FUTEX_WAITERS
  const long long operation = call.second & ~private_flag;
  const auto value = static_cast<unsigned>(call.third);
  return call.number == SYS_futex && call.fourth == 0 &&
         (operation == lock_pi || operation == lock_pi2 || (operation == wait && (value == 2 || (value & waiters))));
}

/// The process to which a thread belongs; 0 if there is no such thread, or if it is the kernel's.
int process_of(int tid) {
  std::istringstream status(content(folder_of(tid) + "/status"));
  std::string word;
  int pid = 0;
  while (pid == 0 && status >> word)
    if (word == "Tgid:") status >> pid;
  char target[8];
  return pid > 0 && readlink((folder_of(pid) + "/exe").c_str(), target, sizeof target) > 0 ? pid : 0;
}

/// The process that holds the lock of a file for which `pid` waits.
int file_lock_holder(int pid) {
  std::istringstream locks(content("/proc/locks"));
  std::string line, holders_id;
  for (int holder = 0; std::getline(locks, line);) {
    // A line as "2: FLOCK ADVISORY WRITE 4711 ..." names the process that holds lock 2. The lines that follow it name
    // the processes that wait for this lock, as "2: -> FLOCK ADVISORY WRITE 4712 ...".
    std::istringstream words(line);
    std::string id, kind, word;
    int owner = 0;
    words >> id >> kind;
    const bool waits = kind == "->";
    if (waits) words >> kind;
    words >> word >> word >> owner;
    if (!waits)
      holder = owner, holders_id = id;
    else if (owner == pid && id == holders_id)
      return std::max(holder, 0);  // that of an open file description is not known
  }
  return 0;
}

/// The thread that holds the mutex for which a thread of `pid` waits.
int mutex_owner(int pid, const SystemCall& call) {
  // The beginning of pthread_mutex_t of glibc on 64-bit machines.
  struct Mutex {
    unsigned word, count;
    int owner;
    unsigned users;
    int kind;
  } mutex{};
  constexpr int kinds = 3 | 16 | 32 | 64 | 128 | 256 | 512;  // PTHREAD_MUTEX_..._NP, robust, its priority, shared
  constexpr unsigned tid_mask = 0x3fffffff;                  // FUTEX_TID_MASK
  if (read_memory(pid, call.first, &mutex, sizeof mutex) != sizeof mutex) return 0;
  if (mutex.word != 2) return static_cast<int>(mutex.word & tid_mask);
  return mutex.users > 0 && mutex.owner > 0 && (mutex.kind & ~kinds) == 0 ? mutex.owner : 0;
}

struct Holder {
  int pid = 0;               ///< 0: none, or not known
  bool may_release = false;  ///< by another thread than its main one
};
Holder holder_of(int pid, const SystemCall& call) {
  Holder holder;
  if (waits_for_file_lock(call)) {
    holder.pid = file_lock_holder(pid);
    holder.may_release = holder.pid != 0 && other_threads_may_go_on(holder.pid, {holder.pid});
  } else if (waits_for_mutex(call)) {
    const int owner = mutex_owner(pid, call);
    holder.pid = owner > 0 ? process_of(owner) : 0;
    holder.may_release = owner != holder.pid;
  }
  return holder;
}

/// ", which process 4711 (sort) holds".
std::string holder_text(int pid, const Holder& holder) {
  if (holder.pid == 0) return "";
  return ", which " + (holder.pid == pid ? "this process itself" : child_text(holder.pid)) + " holds";
}

std::string call_name(int pid, const SystemCall& call, const std::vector<int>& children, const Holder& holder) {
  const auto of_descriptor = [&](const char* words) {
    return words + descriptor_text(pid, static_cast<int>(call.first));
  };
  if (waits_for_file_lock(call))
    return of_descriptor(call.number == SYS_flock ? "flock of " : "fcntl lock of ") +
           (holder.pid > 0 ? holder_text(pid, holder) : ", whose holder is not known");
  switch (call.number) {
    case SYS_read:
    case SYS_readv:
    case SYS_pread64:
    case SYS_preadv: return of_descriptor("read of ");
    case SYS_write:
    case SYS_writev:
    case SYS_pwrite64:
    case SYS_pwritev: return of_descriptor("write to ");
    case SYS_fsync:
    case SYS_fdatasync: return of_descriptor("fsync of ");
    case SYS_recvfrom:
    case SYS_recvmsg: return of_descriptor("receive from ");
    case SYS_sendto:
    case SYS_sendmsg: return of_descriptor("send to ");
    case SYS_openat: return "open" + path_text(pid, static_cast<int>(call.first), call.second);
    case SYS_futex:
      return holder.pid > 0 ? "wait for a lock" + holder_text(pid, holder)
                            : "wait for a lock, a condition or a thread (futex)";
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return "sleep";
#ifdef SYS_pause
    case SYS_pause: return "wait for a signal";
#endif
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait: return "wait for a signal";
    case SYS_wait4:
    case SYS_waitid: {
      const long long child = call.number == SYS_wait4 ? static_cast<int>(call.first) : call.second;
      const bool names_one = std::find(children.begin(), children.end(), child) != children.end();
      if (names_one) return "wait for " + child_text(static_cast<int>(child));
      return children.size() == 1 ? "wait for " + child_text(children[0]) : "wait for a child process";
    }
    default: return "";
  }
}

/// The futex holds the number of a thread of this process, which the kernel clears when that thread ends.
bool is_end_of_a_thread(int pid, long long futex) {
  int tid = 0;
  return read_memory(pid, futex, &tid, sizeof tid) == sizeof tid && tid > 0 && process_status(pid, tid).exists;
}

/// No other process has the memory at this address. std::future waits there without the flag of a private futex.
bool is_private_memory(int pid, int tid, long long address) {
  std::istringstream maps(content(folder_of(pid) + "/task/" + std::to_string(tid) + "/maps"));
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%llx-%llx %4s", &begin, &end, access) != 3) return false;
    const auto at = static_cast<unsigned long long>(address);
    if (at >= begin && at < end) return access[3] == 'p';
  }
  return false;
}

/// A thread waits in a futex that no other process has, or for the end of another thread, without a limit of time.
bool waits_for_a_lock(int pid, int tid) {
  const SystemCall call = system_call_of(pid, tid);
  return call.number == SYS_futex && call.fourth == 0 &&
         ((call.second & private_flag) != 0 || is_end_of_a_thread(pid, call.first) ||
          is_private_memory(pid, tid, call.first)) &&
         process_status(pid, tid).state == 'S';
}

std::uint64_t signal_bit(int number) { return std::uint64_t{1} << (number - 1); }

/// Signals, one bit each, that a timer or another program may send to let a program go on. Not those of faults and of
/// ends, which runtime systems catch, too, not SIGUSR1, which MPICH catches in each rank, and not those of CPU time,
/// which a thread that waits does not use. That a timer is armed is not required, because alarm() does not show.
std::uint64_t waking_signals(bool has_children) {
  std::uint64_t signals = has_children ? signal_bit(SIGCHLD) : 0;
  for (const int number : {SIGALRM, SIGUSR2, SIGIO}) signals |= signal_bit(number);
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) signals |= signal_bit(number);
  return signals;
}

/// A handler of one of `signals` may run in this thread, as one that posts a semaphore.
bool may_handle(int pid, int tid, std::uint64_t signals) {
  std::istringstream status(content(folder_of(pid) + "/task/" + std::to_string(tid) + "/status"));
  std::uint64_t caught = 0, blocked = 0;
  for (std::string line; std::getline(status, line);) {
    const auto mask_after = [&line](std::string_view name, std::uint64_t& mask) {
      if (line.starts_with(name)) mask = std::strtoull(line.c_str() + name.size(), nullptr, 16);
    };
    mask_after("SigBlk:", blocked);
    mask_after("SigCgt:", caught);
  }
  return (caught & ~blocked & signals) != 0;
}

/// Not known of a thread that waits for a lock without a limit of time if a handler may release it. A zombie is the
/// initial thread that has ended before others.
bool may_go_on(int pid, int tid, std::uint64_t signals) {
  return !is_of_transport(pid, tid) && process_status(pid, tid).state != 'Z' &&
         (!waits_for_a_lock(pid, tid) || may_handle(pid, tid, signals));
}

/// Adds what the processes below `pid` do. False if there are too many of them.
bool add_children(const std::vector<int>& children, std::size_t& seen, ProcessWait& wait) {
  for (const int child : children) {
    if (++seen > most_children) return false;
    const ProcessUse use = process_use(child);
    const auto state = static_cast<std::uint64_t>(process_status(child).cpu_time) + use.io_bytes + use.sleeps;
    wait.children = wait.children * 0x9e3779b97f4a7c15 + state + static_cast<std::uint64_t>(child);
    wait.may_be_served = wait.may_be_served || (sleeps_elsewhere(child, child) && reaches_elsewhere(child));
    if (!add_children(children_of(child), seen, wait)) return false;
  }
  return true;
}

}  // namespace

bool waits_for_this_host(const std::string& channel) {
  static constexpr std::string_view parts[] = {"futex", "pipe_", "fifo", "wait_for_partner", "flock", "locks_", "fcntl",
                                               "do_lock", "posix_lock", "do_wait", "nanosleep",
                                               // a sleep that goes on after the stack of the thread was copied
                                               "do_syscall_"};
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return channel.find(part) != std::string::npos; });
}

ProcessWait process_wait(int pid, int tid) {
  ProcessWait wait;
  const std::vector<int> children = children_of(pid);
  const SystemCall call = system_call_of(pid, tid);
  const Holder holder = holder_of(pid, call);
  if (holder.pid != pid) wait.holder = holder.pid;
  wait.holder_may_release = holder.may_release;
  wait.call = call_name(pid, call, children, holder);
  // The launcher may pass on what a person types.
  const bool reads = call.number == SYS_read || call.number == SYS_readv;
  wait.may_be_served = reads && (call.first == STDIN_FILENO || is_device(target_of(pid, static_cast<int>(call.first))));
  each_number(folder_of(pid) + "/task", [&](int thread) {
    wait.may_be_served = wait.may_be_served || sleeps_elsewhere(pid, thread);
    return !wait.may_be_served;
  });
  each_number(folder_of(pid) + "/task", [&](int thread) {
    wait.may_go_on = may_go_on(pid, thread, waking_signals(!children.empty()));
    return !wait.may_go_on;
  });
  std::size_t seen = 0;
  if (!add_children(children, seen, wait)) wait.may_be_served = true;
  return wait;
}

bool other_threads_may_go_on(int pid, const std::vector<int>& known) {
  bool may = false;
  const std::uint64_t signals = waking_signals(!children_of(pid).empty());
  each_number(folder_of(pid) + "/task", [&](int thread) {
    may = std::find(known.begin(), known.end(), thread) == known.end() && may_go_on(pid, thread, signals);
    return !may;
  });
  return may;
}

}  // namespace bestride::inline telemetry
