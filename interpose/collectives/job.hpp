// SPDX-License-Identifier: Apache-2.0
#pragma once
// Job: what hierarchical collectives need of the whole job, the same on every rank: the topology of MPI_COMM_WORLD,
// rank 0's settings and measurements, and one private communicator for all messages.
//
// There is one private communicator for all, with a tag for each communicator of the application. Alternative
// considered: one private communicator for each. Creating it would run the application's attribute copy functions, and
// would have to wait inside MPI_Iallgather.
#include <mpi.h>

#include "model/topology.hpp"
#include "perfmodel/collective/choice.hpp"
#include "perfmodel/collective/one_node.hpp"

namespace bestride::inline interpose {

/// Rank 0's settings, sent to all ranks as plain bytes.
struct JobSettings {
  CollectiveParameters parameters;
  std::int64_t window_limit = 0;  ///< bytes of a communicator's shared memory on one node
  std::int64_t cache_bytes = 0;   ///< bytes for past allgathers on a node, of all communicators together; 0: nothing is
                                  ///< kept
  std::int32_t reassociate = 0;   ///< BESTRIDE_REASSOCIATE
  std::int32_t calls_before_order = -1;  ///< equal calls until the order of sums is found out; -1: it never is
  std::int32_t quantize = 0;             ///< BESTRIDE_QUANTIZE: bits of a code, 0: off
  OneNodeLimits one_node;
  std::int32_t beside_tools = 0;  ///< BESTRIDE_COLLECTIVES is set, so a tool_behind() does not matter
};

class NodeMemory;

struct Job {
  const Topology& topology;  ///< of MPI_COMM_WORLD
  const JobSettings& settings;
  const CollectiveChooser& chooser;
  MPI_Comm private_comm;      ///< a private duplicate of MPI_COMM_WORLD; errors on it are returned
  int largest_tag;            ///< of TagAgreement
  int first_record_tag_pair;  ///< of CommMemory; two for each record follow
  bool nonblocking;  ///< every rank has a progress thread that may call MPI, so nonblocking and persistent collectives
                     ///< may go through the hierarchy
  NodeMemory* node_memory;  ///< null: some ranks share no memory with those of their node, so collectives within a node
                            ///< are left to the MPI library
  bool nonblocking_on_node;  ///< there is this memory, and every rank has a progress thread, so nonblocking and
                             ///< persistent collectives within a node may go through it
  bool crowded;  ///< a node has more ranks than processors that they may use, and the MPI library's calls keep the
                 ///< processor while they wait
  MPI_Group world_group = MPI_GROUP_NULL;  ///< of MPI_COMM_WORLD
};

/// The job's settings and memory; nullptr, on all ranks alike: Bestride carries out no collectives in this job.
/// Callable from any thread after MPI_Init has returned.
const Job* job() noexcept;

/// Collective, in MPI_Init. Does nothing unless the topology of MPI_COMM_WORLD is known and has several ranks.
/// `processors`: the result of processors_of_ranks(), the same on all ranks; 0: unknown.
void join_job(int processors) noexcept;
/// Called in MPI_Finalize. No collective is started after this.
void leave_job() noexcept;

}  // namespace bestride::inline interpose
