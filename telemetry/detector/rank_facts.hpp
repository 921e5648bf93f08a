// SPDX-License-Identifier: Apache-2.0
#pragma once
// Questions about one rank's snapshot that the detector's rules ask.
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

using Ranks = std::vector<std::int32_t>;

bool is_member(const Ranks& ranks, std::int32_t rank);

/// Calls begun by all threads.
std::uint64_t calls_of(const RankSnapshot& rank);
/// Seconds since a rank last began or ended a call; `most` if that is not known.
double seconds_since_call(const RankSnapshot& rank, double most);
/// True if the rank began calls while its record was read.
bool is_moving(const RankSnapshot& rank);
/// True if the rank is in a call, or polls and it is known what it polls, and that is not only inactive requests.
bool is_in_call(const RankSnapshot& rank);
/// A thread is in a call, and each one outside MPI waits for a lock, a condition or the end of a thread, as one that
/// waits for the thread which receives messages.
bool sleeps_beside_calls(const RankSnapshot& rank);
bool is_in(const RankSnapshot& rank, const char* function);
/// True if the rank is in MPI_Abort, or has returned from it, as MPICH's does in some versions.
bool has_aborted(const RankSnapshot& rank);
/// Killed by SIGKILL in MPI_Finalize or after it, and not before one of `ranks` has ended well: perhaps by its
/// launcher.
bool is_killed_after_good_end(const RankSnapshot& rank, std::span<const RankSnapshot> ranks);

/// Stopped by a signal or a debugger.
bool is_held(const RankSnapshot& rank);
/// Kinds of kernel functions in which a thread sleeps (ThreadSnapshot::channel).
bool sleeps_by_itself(const std::string& channel);
bool is_lock(const std::string& channel);
/// True if a thread whose kernel function is `channel` waits for something that no MPI library waits for. In an MPI
/// call this means that a function of the program is running, as an operation of a reduction or an error handler.
bool is_of_program(const std::string& channel);
/// Output, which may take long if its other end is slow: pipe_write, fsync, ...
bool is_output(const std::string& channel);

}  // namespace bestride::inline telemetry
