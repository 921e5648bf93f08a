// SPDX-License-Identifier: Apache-2.0
#pragma once
// Registers and stack memory of the threads of another process, copied while each thread is stopped by ptrace.
//
// ptrace can detach only from a thread that has stopped, and a thread in state D does not stop. The kernel also
// detaches from everything that a tracer traces when the tracer ends. So a thread of this process is the tracer, and
// it ends when a thread of the other process does not stop in time.
#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "telemetry/record/registers.hpp"
#include "telemetry/stacks/memory_map.hpp"
#include "telemetry/stacks/process_stacks.hpp"

namespace bestride::inline telemetry {

struct ThreadCopy {
  int tid = 0;
  ThreadRegisters registers{};
  std::uint64_t stack_begin = 0;     ///< address of the first byte of `stack`
  std::vector<unsigned char> stack;  ///< may be empty
  AddressRange mapping;              ///< of the stack; empty if the thread was created after the map was read
  std::string problem;               ///< why nothing was copied; "" if it was
};

struct ProcessCopy {
  std::vector<ThreadCopy> threads;  ///< main thread first, then by tid; without threads that have ended
  /// The main thread, or another one if that has ended: what /proc shows by its number.
  int leading_tid = 0;
  std::chrono::nanoseconds longest_stop{0};
  std::chrono::nanoseconds all_stops{0};
};

/// Errors, limits, thread safety: as take_stacks().
Result<ProcessCopy> copy_threads(int pid, const StackOptions& options);

}  // namespace bestride::inline telemetry
