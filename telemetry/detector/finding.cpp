// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/finding.hpp"

#include <iterator>

namespace bestride::inline telemetry {

const char* name(Fault fault) noexcept {
  static constexpr const char* names[] = {"crash",
                                          "stopped",
                                          "mismatch",
                                          "unmatched message",
                                          "deadlock",
                                          "non-communication hang",
                                          "communication hang",
                                          "starvation",
                                          "slow",
                                          "unreachable host"};
  static_assert(std::size(names) == faults);
  return names[static_cast<unsigned>(fault)];
}

const char* name(Cause cause) noexcept {
  static constexpr const char* names[] = {"unknown", "killed",          "aborted",   "stopped",
                                          "traced",  "uninterruptible", "computing", "sleeping",
                                          "blocked", "transferring",    "finalized", "in MPI"};
  static_assert(std::size(names) == static_cast<unsigned>(Cause::in_mpi) + 1);
  return names[static_cast<unsigned>(cause)];
}

}  // namespace bestride::inline telemetry
