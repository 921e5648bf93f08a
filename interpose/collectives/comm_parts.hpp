// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the members of a communicator on one node need for its calls: a OneNode, a queue, edges. Many communicators live
// for a few calls only, so each part is made in the first call that may gain by it, and creating a communicator costs
// next to nothing. The members count calls alike, so all make a part in the same call. Making it waits for nobody,
// except for edges.
//
// A member without memory for a part says so once; other members may wait for it then.
#include <mpi.h>

#include "interpose/collectives/comm_collectives.hpp"

namespace bestride::inline interpose {

/// The communicator's OneNode; nullptr: there is none so far. Called in a blocking collective that may go through it;
/// counts the call, unless that was done.
OneNode* one_node_of_call(CommEntry& entry) noexcept;
/// Called for such a collective that was left to the MPI library because there is no OneNode.
inline void end_call_without_one_node(CommEntry& entry) noexcept { collectives_of(entry).call_begun = false; }

/// The entry of a communicator whose next blocking neighbor collective is left to the MPI library whatever its
/// arguments are; else nullptr. Such a call has to be counted if it succeeds: one that the library rejects is perhaps
/// made on this rank only.
CommEntry* leaving_neighbor_call(MPI_Comm comm) noexcept;
/// Counts a neighbor collective that was left to the library. `bytes`: how many this rank has sent, as far as it
/// knows.
void count_left_neighbor_call(CommEntry& entry, std::int64_t bytes) noexcept;
/// True if such a call should not read the topology, which takes as long as a quarter of it.
inline bool with_few_neighbor_calls(const CommEntry& entry) noexcept {
  return collectives_of(entry).neighbor_calls < 3;
}
/// The communicator's OneNodeNeighbors; nullptr: there is none so far. Called in a blocking neighbor collective, which
/// this counts.
OneNodeNeighbors* neighbors_of_call(CommEntry& entry) noexcept;

/// Makes the queue of nonblocking collectives, if there is none. False: no memory.
bool make_one_node_queue(CommEntry& entry) noexcept;

/// Called in a nonblocking neighbor collective that would go through a queue: makes the queue if the edges were known
/// when the communicator was created. If not, a later call that may wait looks for them.
void want_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept;
/// Makes the queue of nonblocking neighbor collectives, if it is wanted. Called by all members in a call that may
/// wait.
void make_wanted_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept;
/// All members have created `comm`, which has a virtual topology. Makes that queue if few communicators were created
/// before: a program that makes many uses most of them for a few calls only.
void make_early_neighbor_queue(MPI_Comm comm, CommEntry& entry) noexcept;

}  // namespace bestride::inline interpose
