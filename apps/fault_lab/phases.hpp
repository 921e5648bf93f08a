// SPDX-License-Identifier: Apache-2.0
#pragma once
// The communication phases of a step, one file each. All are collective over MPI_COMM_WORLD and check all that they
// receive. The faults that alter an MPI call are in these functions, at the call.
#include "job.hpp"

namespace fault_lab {

/// Nonblocking exchange with four neighbors of a periodic 2-D grid.
void halo(Job& job);
/// Blocking messages to the next rank: MPI_Sendrecv in even steps, MPI_Send and MPI_Recv in odd ones.
void ring(Job& job);
/// The ring's exchange in the form of a fault or of its clean kind (messages.cpp), in its step. False: there is none.
bool exchange_in_other_form(Job& job);
/// Blocking and nonblocking collectives on two communicators.
void collectives(Job& job);
/// Rank 0 gives tasks to the others and receives results with MPI_ANY_SOURCE. Workers compute. `task_seconds`: length
/// of a task, if it is not that of --work-us.
void farm(Job& job, double task_seconds = 0);

// Only if asked for, or if the fault is there. Their values are checked, but are not in the checksum.

/// One-sided communication: post, start, complete and wait; fences; locks.
void windows(Job& job);
/// A broadcast on an intercommunicator of the two halves of the ranks.
void groups(Job& job);
/// Alltoallv, gatherv and scatterv with blocks of different sizes.
void blocks(Job& job);
/// A file that all ranks write.
void files(Job& job);

}  // namespace fault_lab
