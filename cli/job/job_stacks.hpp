// SPDX-License-Identifier: Apache-2.0
#pragma once
// The call stacks of all ranks of a job on this host, as one tree.
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "telemetry/stacks/stack_tree.hpp"

namespace bestride::inline cli {

struct StackFailure {
  std::int32_t rank = -1;
  int pid = 0;
  int tid = 0;  ///< 0: all threads
  std::string problem;
};

/// What is taken on one host.
struct HostStacks {
  std::vector<RankStack> stacks;
  std::vector<StackFailure> failures;  ///< ranks, and threads of ranks, without a stack
  std::vector<StackFailure> cut;       ///< threads whose outer frames are missing
  double longest_stop = 0;             ///< seconds, of one thread
  std::set<std::string> problems;      ///< why some frames have no names, one line each
};

struct JobStacks {
  std::vector<StackNode> tree;
  std::map<std::int32_t, NamedFrame> places;  ///< of ranks: place_of() the main thread, or of the thread that crashed
  std::vector<std::int32_t> called_back;  ///< ranks whose main thread is in a function that the MPI library has called
  std::vector<StackFailure> failures, cut;
  double longest_stop = 0;
  std::set<std::string> problems;
};

/// True if it has ended and may have left the stack of its end.
bool has_left_stack(const RankSnapshot& rank) noexcept;

/// Takes the stacks of those of the ranks that are alive and visible on this host, each of whose threads is stopped for
/// about 0.1 ms, and those that ranks of this host have left that have ended. One that ends meanwhile is left out.
/// `all_frames`: with those of the MPI library, of libbestride, and outside main, and with the threads of these
/// libraries.
HostStacks take_host_stacks(const std::vector<RankSnapshot>& ranks, bool all_frames);
/// Leaves out what is of other ranks.
void keep_ranks(HostStacks& stacks, const std::vector<RankSnapshot>& ranks);
JobStacks merge_host_stacks(const std::vector<HostStacks>& hosts);

/// The tree and what is missing, in at most `most_lines` + 2 lines.
std::vector<std::string> stack_lines(const JobStacks& stacks, std::size_t most_lines);

}  // namespace bestride::inline cli
