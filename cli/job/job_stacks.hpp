// SPDX-License-Identifier: Apache-2.0
#pragma once
// The call stacks of all ranks of a job on this host, as one tree.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "telemetry/stacks/stack_tree.hpp"

namespace bestride::inline cli {

struct JobStacks {
  struct Failure {
    std::int32_t rank = -1;
    int pid = 0;
    int tid = 0;  ///< 0: all threads
    std::string problem;
  };
  std::vector<StackNode> tree;
  std::vector<Failure> failures;   ///< ranks, and threads of ranks, without a stack
  std::vector<Failure> cut;        ///< threads whose outer frames are missing
  double longest_stop = 0;         ///< seconds, of one thread
  std::set<std::string> problems;  ///< why some frames have no names, one line each
};

/// Takes the stacks of the processes of a job that are alive and visible here. Stops each thread for about 0.1 ms.
/// `all_frames`: with those of the MPI library, of libbestride, and outside main.
JobStacks take_job_stacks(const JobView& view, bool all_frames);

/// The tree and what is missing, in at most `most_lines` + 2 lines.
std::vector<std::string> stack_lines(const JobStacks& stacks, std::size_t most_lines);

}  // namespace bestride::inline cli
