// SPDX-License-Identifier: Apache-2.0
#include "telemetry/stacks/thread_copies.hpp"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <system_error>
#include <thread>

#include "telemetry/record/forbidden_call.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/stacks/refusal.hpp"

namespace bestride::inline telemetry {
namespace {

using Clock = std::chrono::steady_clock;

std::set<int> thread_ids(int pid) {
  std::set<int> ids;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(("/proc/" + std::to_string(pid) + "/task").c_str()),
                                                   &closedir);
  if (!folder) return ids;
  while (const dirent* const entry = readdir(folder.get()))
    if (const int tid = std::atoi(entry->d_name); tid > 0) ids.insert(tid);
  return ids;
}

bool has_ended(int pid, int tid) {
  const ProcessStatus status = process_status(pid, tid);
  return !status.exists || status.state == 'Z' || status.state == 'X';
}

/// The main thread, or the first other one if that has ended: by an ended one the kernel shows no memory.
int leading_thread(int pid) {
  if (!has_ended(pid, pid)) return pid;
  for (const int tid : thread_ids(pid))
    if (!has_ended(pid, tid)) return tid;
  return pid;
}

/// /proc/PID/mem.
class MemoryFile {
 public:
  MemoryFile() = default;
  ~MemoryFile() {
    if (file_ >= 0) close(file_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// As pread().
  ssize_t read(int pid, void* into, std::size_t bytes, std::uint64_t address) noexcept {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/mem", pid);
    if (file_ < 0) file_ = open(path, O_RDONLY | O_CLOEXEC);
    return file_ < 0 ? -1 : pread(file_, into, bytes, static_cast<off_t>(address));
  }

 private:
  int file_ = -1;
};

/// Copies threads of one process. One thread of this process at a time uses it.
class Tracer {
 public:
  Tracer(int pid, int leading_tid, const StackOptions& options)
      : pid_(pid),
        leading_tid_(leading_tid),
        options_(options),
        page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))),
        map_(memory_map(leading_tid)),
        deadline_(Clock::now() + options.process_wait),
        buffer_(std::max(options.stack_bytes, page_)),  // written, to avoid page faults during a stop
        deadly_read_(read_is_deadly()) {}

  /// True if this process traces nothing afterwards. False: the calling thread must end.
  [[nodiscard]] bool copy(int tid) {
    if (refused_) return true;
    if (result_.all_stops >= options_.stop_limit) {
      add(tid).problem = "left out: the other threads were stopped for " + std::to_string(options_.stop_limit.count()) +
                         " ms, which is the limit";
      return true;
    }
    if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      const int error = errno;
      // A thread that is about to end is refused, too.
      for (int i = 0; i < 5 && error != ESRCH && !has_ended(pid_, tid); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      if (error == ESRCH || has_ended(pid_, tid)) return true;
      add(tid).problem = refusal_text(trace_facts(pid_, tid, error));
      refused_ = result_.threads.size() == 1;
      return true;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr) != 0) return false;  // it ends
    const auto limit = std::min(Clock::now() + options_.thread_wait, deadline_);
    auto pause = std::chrono::microseconds(0);
    while (true) {
      const auto before = Clock::now();
      siginfo_t stop{};
      // Without WEXITED, so that the end of a child of this process is left to the caller.
      const int error = waitid(P_PID, static_cast<id_t>(tid), &stop, WSTOPPED | WNOHANG | __WALL | __WNOTHREAD);
      if (error != 0 && errno != EINTR) return false;  // it has ended
      if (error == 0 && stop.si_pid == tid) return copy_stopped(tid, stop.si_status, before);
      if (has_ended(pid_, tid)) return false;
      if (before > limit) {
        const char state = process_status(pid_, tid).state;
        add(tid).problem = state == 'D' ? "can't be interrupted (D" + channel(tid) + ")"
                                        : std::string("did not stop in time (state ") + state + ")";
        return false;
      }
      pause.count() < 20 ? void(sched_yield()) : std::this_thread::sleep_for(pause);
      pause = std::min(pause + std::chrono::microseconds(1 + pause.count() / 8), std::chrono::microseconds(1000));
    }
  }

  ProcessCopy take() { return std::move(result_); }
  bool refused() const noexcept { return refused_; }  ///< the first thread was; the others were not tried
  bool other_word_size() const noexcept { return other_word_size_; }

 private:
  static bool read_is_deadly() {
    static const bool deadly = call_is_deadly(SYS_process_vm_readv);
    return deadly;
  }

  ThreadCopy& add(int tid) {
    result_.threads.emplace_back().tid = tid;
    return result_.threads.back();
  }

  std::string channel(int tid) const {
    const std::string name = waiting_channel(pid_, tid);
    return name.empty() ? "" : ", " + name;
  }

  /// `status`: of waitid: the signal, and an event above it. `since`: when the thread was last seen running.
  bool copy_stopped(int tid, int status, Clock::time_point since) {
    ThreadRegisters registers{};
    iovec whole{&registers, sizeof registers};
    const bool read = ptrace(PTRACE_GETREGSET, tid, reinterpret_cast<void*>(NT_PRSTATUS), &whole) == 0;
    const bool other_size = read && whole.iov_len != sizeof registers;
    std::size_t copied = 0;
    std::uint64_t begin = 0;
    AddressRange mapping;
    if (read && !other_size) {
      mapping = range_of(map_, stack_pointer(registers));
      begin = std::max(stack_pointer(registers) - red_zone, mapping.begin);
      copied = read_stack(begin, mapping.end);
    }
    // A signal that was about to be delivered is passed on; an event (the interrupt, a group stop) is not a signal.
    const long signal = status >> 8 ? 0 : status & 0x7f;
    const bool detached = ptrace(PTRACE_DETACH, tid, nullptr, signal) == 0;
    const std::chrono::nanoseconds stopped = Clock::now() - since;
    result_.all_stops += stopped;
    result_.longest_stop = std::max(result_.longest_stop, stopped);
    other_word_size_ = other_word_size_ || other_size;
    if (read && !other_size) {
      ThreadCopy& copy = add(tid);
      if (copied == 0 && read_error_ != 0)
        copy.problem = std::string("its stack can't be read: ") + std::strerror(read_error_);
      copy.registers = registers;
      copy.stack_begin = begin;
      copy.mapping = mapping;
      copy.stack.assign(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(copied));
    }
    return detached;
  }

  /// Reads page by page up to the first one that can't be read. Returns the number of bytes.
  std::size_t read_stack(std::uint64_t begin, std::uint64_t end) {
    std::size_t length = buffer_.size();
    if (end > begin) length = std::min<std::size_t>(length, end - begin);
    std::size_t done = 0;
    while (done < length) {
      constexpr std::size_t most_parts = 64;
      iovec parts[most_parts];
      std::size_t count = 0, planned = 0;
      for (std::uint64_t at = begin + done; count < most_parts && done + planned < length; ++count) {
        const std::size_t part = std::min<std::size_t>(page_ - at % page_, length - done - planned);
        parts[count] = {reinterpret_cast<void*>(at), part};
        at += part;
        planned += part;
      }
      iovec to{buffer_.data() + done, planned};
      ssize_t now = deadly_read_ ? -1 : process_vm_readv(leading_tid_, &to, 1, parts, count, 0);
      // A seccomp filter may forbid this call alone.
      if (deadly_read_ || (now < 0 && errno != EFAULT)) {
        now = memory_.read(leading_tid_, to.iov_base, planned, begin + done);
        if (now < 0) read_error_ = errno;
      }
      if (now <= 0) break;
      done += static_cast<std::size_t>(now);
      if (static_cast<std::size_t>(now) < planned) break;
    }
    return done;
  }

  const int pid_, leading_tid_;
  const StackOptions& options_;
  const std::size_t page_;
  const std::vector<AddressRange> map_;
  const Clock::time_point deadline_;
  std::vector<unsigned char> buffer_;
  ProcessCopy result_;
  const bool deadly_read_;  ///< process_vm_readv
  MemoryFile memory_;
  int read_error_ = 0;  ///< errno, if the kernel forbids reading
  bool refused_ = false, other_word_size_ = false;
};

/// Copies the threads `ids`, each of which is removed before it is tried.
void copy_all(Tracer& tracer, std::vector<int>& ids) {
  while (!ids.empty()) {
    // The kernel detaches from what this thread still traces when it ends.
    std::thread([&] {
      bool clean = true;
      while (clean && !ids.empty()) {
        const int tid = ids.back();
        ids.pop_back();
        clean = tracer.copy(tid);
      }
    }).join();
  }
}

}  // namespace

Result<ProcessCopy> copy_threads(int pid, const StackOptions& options) {
  const std::string process = "process " + std::to_string(pid);
  if (pid <= 0) return Error{"there is no " + process};
  const ProcessStatus status = process_status(pid);
  if (!status.exists) return Error{"there is no " + process};
  if ((status.state == 'Z' || status.state == 'X') && is_ending(pid)) return Error{process + " has ended"};
  if (pid == getpid()) return Error{process + " is this one, and a process can't trace itself"};

  static const bool deadly = call_is_deadly(SYS_ptrace);
  if (deadly) return Error{process + " can't be traced: a seccomp filter ends those that call ptrace"};
  const int leading = leading_thread(pid);
  Tracer tracer(pid, leading, options);
  std::set<int> known;
  try {
    // Threads may be created meanwhile. Twice is enough for all but a program that does nothing else.
    for (int round = 0; round < 2; ++round) {
      std::vector<int> ids;
      for (const int tid : thread_ids(pid))
        if (known.insert(tid).second && !has_ended(pid, tid)) ids.push_back(tid);
      std::sort(ids.begin(), ids.end(),
                [&](int a, int b) { return std::pair(a != leading, a) > std::pair(b != leading, b); });
      copy_all(tracer, ids);  // from the back
      if (tracer.refused()) break;
    }
  } catch (const std::system_error& error) {
    return Error{std::string("no thread for tracing: ") + error.what()};
  }
  ProcessCopy result = tracer.take();
  if (tracer.other_word_size()) return Error{process + " is a 32-bit program"};
  if (tracer.refused()) return Error{result.threads.front().problem};
  result.leading_tid = leading;
  if (is_ending(pid) || process_status(pid).start_time != status.start_time || result.threads.empty())
    return Error{process + " ended while its stacks were taken"};
  std::stable_sort(result.threads.begin(), result.threads.end(), [&](const ThreadCopy& a, const ThreadCopy& b) {
    return std::pair(a.tid != leading, a.tid) < std::pair(b.tid != leading, b.tid);
  });
  return result;
}

}  // namespace bestride::inline telemetry
