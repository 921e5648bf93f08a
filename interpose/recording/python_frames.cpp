// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/python_frames.hpp"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace bestride::inline interpose {
namespace {

void* (*current_thread)() = nullptr;           ///< PyGILState_GetThisThreadState
void (*dump_traceback)(int, void*) = nullptr;  ///< _Py_DumpTraceback
constexpr int faults[] = {SIGSEGV, SIGBUS};
sigjmp_buf after_fault;
long reader = 0;  ///< the thread that reads frames

void leave(int) {
  if (syscall(SYS_gettid) == reader) siglongjmp(after_fault, 1);
  // Another thread has crashed meanwhile: it repeats its fault until the first one has its own handlers again.
  const timespec pause{0, 10000000};
  nanosleep(&pause, nullptr);
}

}  // namespace

void find_python_frames() noexcept {
  current_thread = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
  dump_traceback = reinterpret_cast<void (*)(int, void*)>(dlsym(RTLD_DEFAULT, "_Py_DumpTraceback"));
}

void write_python_frames(int file) noexcept {
  if (!current_thread || !dump_traceback) return;
  void* const thread = current_thread();
  if (!thread) return;
  reader = syscall(SYS_gettid);
  struct sigaction before[2], action{};
  action.sa_handler = leave;
  action.sa_flags = SA_ONSTACK;
  sigset_t blocked, faults_only;
  sigemptyset(&faults_only);
  for (const int fault : faults) sigaddset(&faults_only, fault);
  for (int i = 0; i < 2; ++i) sigaction(faults[i], &action, &before[i]);
  pthread_sigmask(SIG_UNBLOCK, &faults_only, &blocked);
  if (sigsetjmp(after_fault, 1) == 0) dump_traceback(file, thread);
  for (int i = 0; i < 2; ++i) sigaction(faults[i], &before[i], nullptr);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

}  // namespace bestride::inline interpose
