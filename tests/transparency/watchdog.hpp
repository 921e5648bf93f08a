// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ends a process that hangs and prints the rank and the step, which the time limit of ctest does not report.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "tests/support/harness.hpp"

namespace bestride::test {

inline std::atomic<const char*> current_step{"start"};

/// Sets the name of the current step. The text must live as long as the process.
inline void step(const char* text) { current_step = text; }

/// SIGALRM ends the process after `seconds`, unless this is called again. TEST_HANG_SECONDS overrides `seconds`.
inline void watch_for_hang(unsigned seconds = 10) {
  if (const char* given = std::getenv("TEST_HANG_SECONDS")) seconds = static_cast<unsigned>(std::atoi(given));
  struct sigaction action = {};
  action.sa_handler = [](int) {
    char line[200];
    const int length =
        std::snprintf(line, sizeof line, "FAILED rank %d hangs in: %s\n", world_rank(), current_step.load());
    if (write(2, line, static_cast<std::size_t>(length)) < 0) _exit(8);
    // MPI_Abort could hang as well. mpiexec ends the other ranks.
    _exit(9);
  };
  sigaction(SIGALRM, &action, nullptr);
  alarm(seconds);
}

/// run_cases() in which MPI_Init and each case have `seconds` before SIGALRM.
template <unsigned seconds = 10>
int run_watched_cases(int argc, char** argv, int threads = MPI_THREAD_SINGLE) {
  watch_for_hang(seconds);
  return run_cases(argc, argv, threads, [] {
    step("start");
    watch_for_hang(seconds);
  });
}

}  // namespace bestride::test
