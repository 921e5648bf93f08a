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
                                          "slow communication",
                                          "unreachable host"};
  static_assert(std::size(names) == faults);
  return names[static_cast<unsigned>(fault)];
}

const char* name(Cause cause) noexcept {
  static constexpr const char* names[] = {"unknown", "killed",  "aborted",         "MPI error", "exception",
                                          "stopped", "traced",  "uninterruptible", "computing", "sleeping",
                                          "blocked", "waiting", "transferring",    "starting",  "finalized",
                                          "polling", "in MPI"};
  static_assert(std::size(names) == static_cast<unsigned>(Cause::in_mpi) + 1);
  return names[static_cast<unsigned>(cause)];
}

const char* name(PathKind kind) noexcept {
  static constexpr const char* names[] = {"link", "two-way link", "send", "receive", "send and receive"};
  static_assert(std::size(names) == static_cast<unsigned>(PathKind::node) + 1);
  return names[static_cast<unsigned>(kind)];
}

}  // namespace bestride::inline telemetry
