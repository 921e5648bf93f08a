// SPDX-License-Identifier: Apache-2.0
#pragma once
// MessageNumbers: whether a message can have met its match, by counting.
//
// A call with several messages (MPI_Waitall, MPI_Sendrecv) does not tell which of them are complete. But the n-th send
// to a rank cannot have been received before that rank has begun n receives from this one, and the n-th receive from a
// rank cannot be complete before it has begun n sends. Receives from any source count for an unknown rank; at least as
// many of them took this rank's messages as those of the other ranks cannot explain. Alternative considered: matching
// by (communicator, peer, tag), which needs all messages since the beginning of the job.
#include <cstdint>
#include <unordered_map>

#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {

/// A send or receive that a rank has begun.
struct NumberedMessage {
  CallKind kind = CallKind::send;  ///< send or receive
  std::uint32_t communicator = no_index;
  std::int32_t tag = no_tag;
  std::uint32_t number = 0;  ///< RequestRecord::number; 0: of a blocking call
};

class MessageNumbers {
 public:
  /// `job` must outlive this.
  explicit MessageNumbers(const Members& job);

  /// True if it is certain that `peer` has not begun the operation that matches. False if the counts do not tell:
  /// several threads, communicators whose members are not evenly spaced, sends to a rank that receives from any source.
  /// The caller has seen that no pending operation of `peer` matches.
  bool is_surely_unmatched(const RankSnapshot& rank, const NumberedMessage& message, const RankSnapshot& peer) const;

 private:
  std::int64_t from_any_source(const RankSnapshot& rank, const RankSnapshot& peer) const;

  bool all_counted_ = true;
  std::unordered_map<std::int32_t, std::int64_t> sent_to_;  ///< by all ranks, with sends that may be under way
};

}  // namespace bestride::inline telemetry
