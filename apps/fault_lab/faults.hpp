// SPDX-License-Identifier: Apache-2.0
#pragma once
// The faults and clean variants that happen between the computation and the communication of a phase, or last to the
// end of the run. Each function returns at once if job.plan.kind is not one of its kinds.
#include "job.hpp"

namespace fault_lab {

/// On the fault rank: ends the process.
void crash(Job& job);
/// On the fault rank: does not return, or after --fault-seconds.
void stall(Job& job);
/// On the fault rank: leaves a thread of this process frozen inside MPI while it holds the library's lock, and calls
/// MPI, which does not return.
void hold_progress(Job& job);
/// On the fault rank: makes it slower until the end of the run.
void slow_down(Job& job);

/// Variants of a correct run that interrupt it. All ranks call it.
void interrupt(Job& job);
/// Writes the checkpoint of this step, if there is one. All ranks call it at the end of a step.
void checkpoint(Job& job);
/// On hosts with several ranks: binds this process to the first of its CPUs.
void share_one_core(Job& job);

/// A thread that waits in a receive as long as the object exists, for --fault listener_thread.
class Listener {
 public:
  explicit Listener(Job& job);
  ~Listener();

 private:
  Job& job_;
  std::thread thread_;
};

}  // namespace fault_lab
