// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/crash_notes.hpp"

#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/file_size_limit.hpp"
#include "interpose/recording/python_frames.hpp"
#include "telemetry/record/crash_file.hpp"
#include "telemetry/record/end_notes.hpp"
#include "telemetry/record/job_folder.hpp"

namespace bestride::inline interpose {
namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
struct sigaction previous[NSIG];
char path[PATH_MAX];
std::atomic<int> owner{0};  ///< the process that is recorded, not a child of it; 0 after its first crash
std::atomic<bool> noted{false};

/// A text of fixed size, made without the C library's formatting, which is not safe in a signal handler.
class Text {
 public:
  Text& operator<<(const char* text) noexcept {
    while (*text && length_ < sizeof text_) text_[length_++] = *text++;
    return *this;
  }
  Text& number(std::uint64_t value, unsigned base) noexcept {
    char digits[24];
    std::size_t count = 0;
    do digits[count++] = "0123456789abcdef"[value % base];
    while ((value /= base) != 0);
    while (count > 0 && length_ < sizeof text_) text_[length_++] = digits[--count];
    return *this;
  }
  std::string_view view() const noexcept { return {text_, length_}; }

 private:
  char text_[120];
  std::size_t length_ = 0;
};

const char* arithmetic_fault(int code) noexcept {
  switch (code) {
    case FPE_INTDIV: return "integer division by zero";
    case FPE_INTOVF: return "integer overflow";
    case FPE_FLTDIV: return "floating-point division by zero";
    case FPE_FLTOVF: return "floating-point overflow";
    case FPE_FLTUND: return "floating-point underflow";
    case FPE_FLTRES: return "inexact floating-point result";
    case FPE_FLTINV: return "invalid floating-point operation";
    default: return "";
  }
}

Text text_of(int signal, const siginfo_t& info, const ucontext_t& context) noexcept {
  Text text;
  if (info.si_code <= 0) {  // sent
    if (info.si_pid != getpid() && info.si_pid > 0)
      text << "sent by process ", text.number(static_cast<std::uint64_t>(info.si_pid), 10);
    return text;
  }
  if (signal == SIGFPE) return text << arithmetic_fault(info.si_code);
  if (signal == SIGILL) return text;
  if (info.si_code == SI_KERNEL) return text << "an access to no valid address";  // which one is not known
  const auto address = reinterpret_cast<std::uint64_t>(info.si_addr);
  const std::uint64_t stack = stack_pointer(registers_of(context));
  // The stack itself is mapped; a large frame may reach far below its end.
  if (signal == SIGSEGV && address + (64 << 10) >= stack && address < stack + 4096) return text << "stack overflow";
  text << "address 0x";
  return text.number(address, 16);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  struct sigaction now {};
  // Without this flag, as after signal(), there is no information, and `info` and `context` point anywhere.
  if (sigaction(signal, nullptr, &now) == 0 && now.sa_sigaction == on_signal && (now.sa_flags & SA_SIGINFO) == 0) {
    sigaction(signal, &previous[signal], nullptr);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
    errno = error;
    return;
  }
  int self = getpid();
  if (owner.compare_exchange_strong(self, 0)) {
    const ucontext_t& interrupted = *static_cast<const ucontext_t*>(context);
    note_end(EndKind::signal, signal, text_of(signal, *info, interrupted).view());
    write_crash_file(path, interrupted, write_python_frames);
    noted = true;
  } else if (self == 0) {
    // Another thread is writing; this one may not end the process meanwhile.
    for (int i = 0; i < 100 && !noted; ++i) {
      const timespec pause{0, 10000000};
      nanosleep(&pause, nullptr);
    }
  }
  sigaction(signal, &previous[signal], nullptr);
  // A fault happens again when the instruction is repeated; a signal that was sent has to be sent again. It is
  // delivered when this handler returns.
  if (info->si_code <= 0) syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), signal, info);
  errno = error;
}

/// True for the default action, and for handlers of libraries that report a crash and then end the process.
bool may_be_replaced(const struct sigaction& action) noexcept {
  const bool extended = (action.sa_flags & SA_SIGINFO) != 0;
  if (!extended && action.sa_handler == SIG_DFL) return true;
  if (!extended && action.sa_handler == SIG_IGN) return false;
  Dl_info where;
  const void* const handler =
      extended ? reinterpret_cast<const void*>(action.sa_sigaction) : reinterpret_cast<const void*>(action.sa_handler);
  if (!dladdr(handler, &where) || !where.dli_fname) return false;
  const char* const slash = std::strrchr(where.dli_fname, '/');
  const std::string_view name = slash ? slash + 1 : where.dli_fname;
  return name.starts_with("libucs.so") || name.starts_with("libgfortran.so");
}

void give_alternate_stack() noexcept {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
  const std::size_t bytes = (64 << 10) + getauxval(AT_MINSIGSTKSZ);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  const stack_t own{memory, 0, bytes};
  if (sigaltstack(&own, nullptr) != 0) munmap(memory, bytes);
}

}  // namespace

void note_crashes(const char* record_path) noexcept try {
  constexpr std::size_t most_bytes =
      sizeof(CrashHeader) + crash_stack_bytes + most_crash_map_bytes + most_crash_text_bytes;
  const std::string file = crash_path(record_path);
  // Beyond a limit, write() would raise another signal.
  if (file.size() >= sizeof path || !within_file_size_limit(most_bytes)) return;
  std::strcpy(path, file.c_str());
  find_python_frames();
  give_alternate_stack();
  owner = getpid();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  // The others would end the process before its stack is written.
  for (const int signal : signals) sigaddset(&action.sa_mask, signal);
  for (const int signal : signals) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_sigaction == on_signal || !may_be_replaced(now)) continue;
    previous[signal] = now;
    sigaction(signal, &action, nullptr);
  }
} catch (...) {  // without memory for the name
}

static void note_here(EndKind kind, int code) noexcept {
  int self = getpid();
  ucontext_t here;
  if (!owner.compare_exchange_strong(self, 0) || getcontext(&here) != 0) return;
  note_end(kind, code, "");
  write_crash_file(path, here, write_python_frames);
  noted = true;
}

void note_exit(int code) noexcept { note_here(EndKind::exit, code); }

void note_abort() noexcept {
  struct sigaction now {};
  const bool handled = sigaction(SIGABRT, nullptr, &now) != 0 || (now.sa_flags & SA_SIGINFO) != 0 ||
                       (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  if (!handled) note_here(EndKind::signal, SIGABRT);
}

}  // namespace bestride::inline interpose
