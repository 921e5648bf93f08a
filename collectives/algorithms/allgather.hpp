// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allgather: at the start every rank has its part of its node's vector; at the end every rank has all node vectors. It
// is also the second half of an allreduce.
//
// Each node's vector leaves the node once for every other node, one slice per lane, directly to its destination. So
// (N-1)/N of the result enters and leaves every node, which is the lower bound. If nodes contribute unequal numbers of
// bytes, a part goes through other nodes, which reaches the lower bound again (relays). Inside the node all data goes
// through the channels: one copy in and one copy out per rank.
//
// Each pair of ranks has its own messages in flight, up to 16 pairs per rank at the same time, those of the nearest
// nodes first. Alternative considered: in step t node n sends to n+t, with one window for all. Then a late node has two
// senders at a time, and another node has none: with 3 x 2 ranks and 4 MiB at 200 Mbit/s this costs 1.17 to 1.27 times
// the limit, against 1.05 times with pairs.
//
// It can't deadlock, with any number of messages in flight. A node's own data waits, in each pair, only for the own
// data of nodes in earlier pairs, in the order of steps, at either end. So the first pair that has not ended can always
// continue, and all of them end. Relayed data waits for own data, and for data that is relayed before it in the same
// order.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// Receives a copy of what this rank receives, to keep it.
class PieceObserver {
 public:
  /// A piece of another node's vector. Pieces come in the order of their arrival. `data` is valid during the call only.
  virtual void keep(int node, Range range, const std::byte* data) noexcept = 0;

 protected:
  ~PieceObserver() = default;
};

/// A shorter encoding of pieces for the network. A message shorter than its piece is encoded; a message of the same
/// length is the piece itself.
class PieceCode {
 public:
  /// Encodes a piece of a node's vector, of the own node or one that this node relays. Writes it to `out`, which has
  /// room for one byte less than the piece, and returns its size. 0: there is no shorter form.
  virtual std::int64_t encode(int node, Range range, const std::byte* piece, std::byte* out) noexcept = 0;
  /// Decodes a piece of another node's vector. `encoded` and `piece` do not overlap. Returns false if the encoding is
  /// invalid.
  virtual bool decode(int node, Range range, const std::byte* encoded, std::int64_t bytes,
                      std::byte* piece) noexcept = 0;

 protected:
  ~PieceCode() = default;
};

/// `vectors`: on entry this rank's part of its own node's vector is filled in; the rest is filled in by the task. Cuts
/// are at multiples of `unit` bytes. `kept` may be nullptr. `code` may be nullptr, but then on all members. All
/// arguments outlive the task. The task fails if a piece can't be decoded.
Task allgather(Hierarchy& hierarchy, const NodeVectors& vectors, PipelineSettings pipeline, std::int64_t unit = 1,
               PieceObserver* kept = nullptr, PieceCode* code = nullptr);

}  // namespace bestride::inline collectives
