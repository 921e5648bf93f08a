// SPDX-License-Identifier: Apache-2.0
#pragma once
// The communication phases of a step, one file each. All are collective over MPI_COMM_WORLD and check all that they
// receive. The faults that alter an MPI call are in these functions, at the call.
#include "job.hpp"

namespace fault_lab {

/// Nonblocking exchange with four neighbours of a periodic 2-D grid.
void halo(Job& job);
/// Blocking messages to the next rank: MPI_Sendrecv in even steps, MPI_Send and MPI_Recv in odd ones.
void ring(Job& job);
/// Blocking and nonblocking collectives on two communicators.
void collectives(Job& job);
/// Rank 0 gives tasks to the others and receives results with MPI_ANY_SOURCE. Workers compute. `task_seconds`: length
/// of a task, if it is not that of --work-us.
void farm(Job& job, double task_seconds = 0);

}  // namespace fault_lab
