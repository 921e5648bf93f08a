// SPDX-License-Identifier: Apache-2.0
#pragma once
// NeighborQueue: the nonblocking neighbor collectives of a communicator whose members are all on one node, or one
// persistent one, through memory of their own that the members share.
//
// The first operation, or the initialization of the persistent one, creates the memory. Steps make no MPI call, because
// the progress thread takes them, too. Without memory, nonblocking operations go by messages. The numbers of the edges,
// which need the MPI library, are found when the communicator is created, or in the initialization call: a nonblocking
// call may not wait for other members.
#include <mpi.h>

#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/one_node/edge_messages.hpp"
#include "collectives/one_node/edges.hpp"
#include "interpose/collectives/comm_memory.hpp"
#include "interpose/collectives/neighbor_edges.hpp"
#include "interpose/collectives/queue.hpp"

namespace bestride::inline interpose {

struct Job;

class NeighborQueue final : public CollectiveQueue {
 public:
  /// A queue for a persistent collective. Collective over the members of `comm`, which has a virtual topology and whose
  /// members are on one node. Returns nullptr on all members if it is left to the MPI library.
  static std::shared_ptr<NeighborQueue> make_persistent(MPI_Comm comm, CommEntry& entry) noexcept;
  /// May throw std::bad_alloc. `memory` gets its record before the first operation.
  NeighborQueue(const Job& job, std::shared_ptr<CommMemory> memory, std::vector<int> world_ranks);
  /// Called once, with edges, before anything is added.
  void set_edges(FoundEdges found) noexcept { found_ = std::move(found); }

  bool serves(NeighborForm form) const noexcept { return found_.edges->serves(form); }
  const char* variant() const noexcept override { return "one node"; }
  /// The task of one operation. Block i of `input` and `output` is that of neighbor i; the operands live until the
  /// task has ended.
  Task exchange(NeighborForm form, const Operands& input, const Operands& output);

 private:
  Task share_memory() override;
  Task make() override;
  bool made() const noexcept override { return edges() || messages_; }
  Task begin(Operation& operation) override { return operation.begin(*this); }
  bool calls_mpi() const noexcept override { return messages_ != nullptr; }

  Edges* edges() const noexcept { return part_ ? part_->view() : nullptr; }

  const std::shared_ptr<CommMemory> memory_;
  FoundEdges found_;
  std::optional<CommPart<Edges, EdgesShape>> part_;
  std::unique_ptr<EdgeMessages> messages_;  ///< if there is no memory
};

/// The communicator's queue if a nonblocking neighbor collective goes through it; nullptr: leave it to the MPI
/// library. All members call this and get the same answer.
std::shared_ptr<NeighborQueue> choose_neighbor_queue(MPI_Comm comm, CommEntry& entry, NeighborForm form) noexcept;

/// The queue of a persistent neighbor collective in its initialization call; waits for the other members. `longest`:
/// bytes of this member's longest message, no value if the library refuses its call; `gaps`: a datatype of this member
/// has gaps. nullptr on all members: leave it to the MPI library.
std::shared_ptr<NeighborQueue> make_neighbor_queue(MPI_Comm comm, CommEntry& entry, NeighborForm form,
                                                   std::optional<std::int64_t> longest, bool gaps) noexcept;

/// A call that a NeighborQueue carries out. `Input`, `Output`: UserBlocks or alike.
template <class Input, class Output>
class NeighborOperation final : public Operation {
 public:
  NeighborOperation(NeighborForm form, Input input, Output output) noexcept
      : form_(form), input_(std::move(input)), output_(std::move(output)) {}
  bool fill() noexcept override { return input_.fill(); }
  Task begin(Hierarchy&) override { throw std::bad_alloc(); }
  Task begin(NeighborQueue& queue) override { return queue.exchange(form_, input_, output_); }
  void finish() noexcept override { output_.complete(); }

 private:
  const NeighborForm form_;
  Input input_;
  Output output_;
};

}  // namespace bestride::inline interpose
