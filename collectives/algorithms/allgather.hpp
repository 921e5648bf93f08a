// SPDX-License-Identifier: Apache-2.0
#pragma once
// Allgather: at the start every rank has its part of its node's vector; at the end every rank has all node vectors. It
// is also the second half of an allreduce.
//
// Each node's vector leaves the node once for every other node, one slice per lane, directly to its destination. So
// (N-1)/N of the result enters and leaves every node, which is the lower bound. If nodes contribute unequal numbers of
// bytes, part of the data is sent through other nodes (relays), which reaches the lower bound again. Inside the node
// all data goes through the channels: one copy in and one copy out per rank.
//
// A rank serves up to 16 pairs concurrently, nearest nodes first, each with its own messages in flight. Alternative
// considered: in step t node n sends to n+t, with one window for all. Then a late node has two senders at a time, and
// another node has none: with 3 x 2 ranks and 4 MiB at 200 Mbit/s this costs 1.17 to 1.27 times the limit, against 1.05
// times with pairs.
//
// It can't deadlock, with any number of messages in flight. At either end of a pair, a node's own data waits only for
// own data of earlier pairs, in the order of steps. So the first unfinished pair can always continue, and all pairs
// finish. Relayed data waits only for own data and for earlier relayed data in the same order.
#include "collectives/core/hierarchy.hpp"
#include "collectives/core/node_vectors.hpp"
#include "collectives/core/task.hpp"

namespace bestride::inline collectives {

/// Gets every piece that this rank receives, to keep a copy of it.
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
