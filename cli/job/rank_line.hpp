// SPDX-License-Identifier: Apache-2.0
#pragma once
// What each rank does now, as lines of text; ranks in the same state share a line.
#include <map>
#include <string>
#include <vector>

#include "cli/job/call_site.hpp"
#include "cli/job/job_view.hpp"

namespace bestride::inline cli {

struct RankGroup {
  std::vector<std::int32_t> ranks;  ///< ascending; all -1: processes before MPI_Init has returned
  int pid = 0;                      ///< of the first one
  std::string state;                ///< "MPI_Recv(MPI_COMM_WORLD, from 3)", "not in MPI", "gone (...)"
  double least_seconds = 0;         ///< in this state; 0: not known
  double most_seconds = 0;
  std::string rest;     ///< "at solve (solver.f90:88)  waits for rank 5"
  bool urgent = false;  ///< of interest even if there are many groups: a culprit, gone, stopped

  std::string text() const;
};

/// The groups of a job, by their first rank. `places`: of ranks in a call, where that is if their call sites do not
/// tell it, which are the interpreter's. `crashed`: the ranks that have ended first; the launcher has ended the others
/// because of that. Null: not known.
std::vector<RankGroup> rank_groups(const JobView& view, CallSites& sites,
                                   const std::map<std::int32_t, std::string>& places = {},
                                   const std::vector<std::int32_t>* crashed = nullptr);

/// "MPI_Allreduce(MPI_COMM_WORLD #1042, 8 B)".
std::string call_text(const RankSnapshot& rank, const CallSnapshot& call, CallSites& sites);
/// The name of a communicator, window or file; if it has none, what it is: "communicator of ranks 0,2 (split from
/// MPI_COMM_WORLD at grid.c:31)". `index`: in the record of the rank.
std::string communicator_text(const RankSnapshot& rank, std::uint32_t index, CallSites& sites);
/// The text of the communicator with this uid; "a communicator" if no rank knows it.
std::string communicator_text(const JobView& view, std::uint64_t uid);
/// "signal 11 (Segmentation fault)".
std::string signal_text(int signal);
/// True if its MPI_Finalize has returned, perhaps with an error.
bool has_finalized(const RankSnapshot& rank);
/// How a process that is gone has ended, as far as it has noted that or an observer has seen it: "ended by signal 11
/// (Segmentation fault)", "exited with code 3 before MPI_Finalize".
std::string end_of_rank(const RankSnapshot& rank);
/// "not in MPI, running (R)", "in MPI_Recv(...)": for the diagnosis.
std::string short_state(const JobView& view, const RankSnapshot& rank);
/// The thread that a rank's line describes: the one longest in a call, else the one that was last in a call; null if
/// the process has made no call.
const ThreadSnapshot* leading_thread(const RankSnapshot& rank);

}  // namespace bestride::inline cli
