// SPDX-License-Identifier: Apache-2.0
// sample_program MODE: a process with known stacks, for process_stacks_test.cpp. Prints "ready" and stays there until
// it is killed or its parent ends. Compiled with -O2 -g -fomit-frame-pointer.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

std::atomic<int> started{0};
std::atomic<unsigned> turns{0};

void say_ready() {
  if (write(STDOUT_FILENO, "ready\n", 6) != 6) std::abort();
}

}  // namespace

namespace sample {

/// Prevents tail calls, which the compiler turns into jumps.
inline void after_call() { asm volatile("" : : : "memory"); }

__attribute__((noinline)) void sleep_long() {
  const timespec hour{3600, 0};
  while (true) nanosleep(&hour, nullptr);
}

__attribute__((noinline)) void spin() {
  while (true) turns.fetch_add(1, std::memory_order_relaxed);
}

inline __attribute__((always_inline)) void inlined() {
  sleep_long();  // line of the inlined function's call
  after_call();
}

__attribute__((noinline)) void inner(int depth) {
  volatile char room[1000];
  room[depth] = 1;
  inlined();  // line of inner's call
  after_call();
}

struct Solver {
  __attribute__((noinline)) void step() {
    inner(3);  // line of step's call
    after_call();
  }
};

__attribute__((noinline)) void recurse(int depth) {
  volatile char room[200];
  room[depth % 200] = 1;
  if (depth == 0)
    sleep_long();
  else
    recurse(depth - 1);
  after_call();
}

__attribute__((noinline)) void worker() {
  ++started;
  spin();
}

}  // namespace sample

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // Yama allows only ancestors otherwise
  const char* const mode = argv[1];
  if (std::strcmp(mode, "chain") == 0) {
    say_ready();
    sample::Solver{}.step();
  } else if (std::strcmp(mode, "recursion") == 0) {
    say_ready();
    sample::recurse(4000);
  } else if (std::strcmp(mode, "spin") == 0) {
    say_ready();
    sample::spin();
  } else if (std::strcmp(mode, "threads") == 0) {
    for (int i = 0; i < 3; ++i) std::thread(sample::worker).detach();
    std::thread named([] {
      prctl(PR_SET_NAME, "writer-7");
      ++started;
      sample::sleep_long();
    });
    while (started < 4) std::this_thread::yield();
    say_ready();
    named.join();
  } else if (std::strcmp(mode, "left") == 0) {
    std::thread([] {
      prctl(PR_SET_NAME, "library");
      ++started;
      sample::sleep_long();
    }).detach();
    std::thread([] {
      while (started < 1) std::this_thread::yield();
      sample::worker();
    }).detach();
    while (started < 2) std::this_thread::yield();
    say_ready();
    pthread_exit(nullptr);
  } else if (std::strcmp(mode, "uninterruptible") == 0) {
    // The parent of a vfork is in state D until its child ends.
    say_ready();
    if (vfork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) pause();
    }
  } else if (std::strcmp(mode, "signals") == 0) {
    // Sends signals to itself without a pause, and writes a byte for each one that it does not get.
    struct sigaction action {};
    action.sa_handler = [](int) { turns.fetch_add(1, std::memory_order_relaxed); };
    sigaction(SIGUSR1, &action, nullptr);
    say_ready();
    while (true) {
      const unsigned before = turns;
      kill(getpid(), SIGUSR1);
      if (turns == before) (void)!write(STDOUT_FILENO, "l", 1);
    }
  }
  return 0;
}
