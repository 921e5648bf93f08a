// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command-line options of fault_lab.
#include <optional>
#include <string>
#include <vector>

#include "kinds.hpp"

namespace fault_lab {

struct Options {
  Kind kind = Kind::none, second = Kind::none;  ///< `second`: none, or a hang of another rank at the same place
  int seed = 1;
  int fault_rank = -1, fault_step = -1;  ///< -1: the seed decides
  std::optional<Phase> fault_phase;      ///< none: the seed decides
  double fault_seconds = 0;              ///< duration of sigstop, spin and sleep; 0: forever
  int steps = 100;
  int work_us = 1000;         ///< computation of a step and phase on one rank
  std::vector<Phase> phases;  ///< parse() sets usual_phases_and(kind) if they are not given
  bool phases_given = false;
  int bytes = 4096;       ///< of a message; a multiple of 8
  int tasks = 2;          ///< of the task farm, per worker and step
  double imbalance = -1;  ///< percent; -1: 30 for the kind `imbalance`, otherwise 0
  int checkpoint_every = 20;
  double checkpoint_seconds = 10;
  double pause_seconds = 5;
  int quota = 50;            ///< percent of a CPU
  bool quota_timer = false;  ///< limit the CPU with a timer, also if a control group could be made
  bool yield = false;
  double limit = 60;
  std::string log;  ///< empty: standard error
  bool list = false, json = false, help = false;
  int ranks = 0;  ///< number of ranks for --list; 0: those of the job
};

/// The phases of a usual run and those in which the fault can happen.
std::vector<Phase> usual_phases_and(Kind kind);

/// Exactly one of the two is set: the options, or a one-line error message.
struct Parsed {
  std::optional<Options> options;
  std::string error;
};
Parsed parse(const std::vector<std::string>& arguments);

/// Returns "", or why the fault can't happen in a job of so many ranks.
std::string validate(const Options& options, int ranks);

std::string usage();

}  // namespace fault_lab
