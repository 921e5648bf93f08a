// SPDX-License-Identifier: Apache-2.0
#pragma once
// A deadlock as text, by the calls that make up its cycle: messages, collective calls, epochs, locks of windows, or
// locks outside MPI.
#include <string>
#include <vector>

#include "cli/watch/summary.hpp"

namespace bestride::inline cli {

/// "ranks wait for each other in a cycle: 0 -> 1 -> 0", "rank 1 waits in MPI_Ssend to itself, ...".
std::string deadlock_headline(const Finding& finding, const JobView& view);
/// "rank 0 holds the lock of a window for which others wait"; "" if its ranks wait for no locks.
std::string lock_evidence(const Finding& finding, const JobView& view);
/// What the user should do now; one line.
std::string deadlock_advice(const Finding& finding, const JobView& view);
std::vector<NextStep> deadlock_steps(const Finding& finding, const JobView& view);

}  // namespace bestride::inline cli
