// SPDX-License-Identifier: Apache-2.0
#pragma once
// MessageNumbers: determines by counting whether a message can have been matched.
//
// A call with several messages (MPI_Waitall, MPI_Sendrecv) does not tell which of them are complete. But the n-th send
// to a rank cannot have been received before that rank has begun n receives from this one, and the n-th receive from a
// rank cannot be complete before it has begun n sends. The source of a receive from any source is not known; at least
// as many of them took this rank's messages as the messages of the other ranks cannot explain. Sends with a tag that
// the receiver has not asked for do not count. Alternative considered: matching by (communicator, peer, tag), which
// needs all messages since the beginning of the job.
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {

/// A slot whose thread has ended, or was never used.
bool is_idle_slot(const RankSnapshot& rank, const ThreadSnapshot& thread);
/// True if at most one of the rank's threads that have made calls still exists.
bool has_one_thread(const RankSnapshot& rank);

/// A send or receive that a rank has begun.
struct NumberedMessage {
  CallKind kind = CallKind::send;  ///< send or receive
  std::uint32_t communicator = no_index;
  std::int32_t tag = no_tag;
  std::uint32_t number = 0;  ///< RequestRecord::number; 0: of a blocking call
};

/// Indexes the ranks that it is asked for. Not thread-safe.
class MessageNumbers {
 public:
  /// `job` must outlive this.
  explicit MessageNumbers(const Members& job) : job_(job), indices_(job.job().size()) {}

  /// True if it is certain that `peer` has not begun the operation that matches. False if the counts do not tell:
  /// several threads, communicators whose members are not evenly spaced, sends to a rank that receives from any source.
  /// The caller has seen that no pending operation of `peer` matches.
  bool is_surely_unmatched(const RankSnapshot& rank, const NumberedMessage& message, const RankSnapshot& peer);
  /// True if it is certain that earlier messages of `rank` have taken all operations that `peer` has begun so far, also
  /// those that are still pending there. `peer` is in no blocking call that matches.
  bool is_later(const RankSnapshot& rank, const NumberedMessage& message, const RankSnapshot& peer) {
    return ahead(rank, message, peer).value_or(0) > 0;
  }
  /// What is_later() says if `peer` is in blocking calls with `operations` operations that match and were not counted
  /// yet.
  bool is_later_than_calls(const RankSnapshot& rank, const NumberedMessage& message, const RankSnapshot& peer,
                           std::int64_t operations);

 private:
  /// Counted messages between a rank and one peer, a rank of MPI_COMM_WORLD.
  struct Counts {
    std::int32_t peer = -1;
    std::int64_t sent = 0, received = 0;
  };
  using Request = std::pair<std::int32_t, const RequestSnapshot*>;  ///< with its peer
  /// A receive that is remembered: finished, present or pending.
  struct Posted {
    std::int32_t peer;  ///< rank of MPI_COMM_WORLD, or any_rank
    std::uint64_t uid;  ///< of the communicator
    std::int32_t tag;
  };
  struct Index {
    std::vector<Counts> counts;                 ///< by peer
    std::vector<Request> pending;               ///< by peer
    std::optional<std::vector<Posted>> posted;  ///< by peer; made when it is needed
    std::int64_t any_source_pending = 0, named_receives = 0, named_receives_pending = 0;
    bool all_named = true;  ///< every peer is known by its rank in MPI_COMM_WORLD

    Counts with(std::int32_t peer) const noexcept;
    std::span<const Request> pending_with(std::int32_t peer) const noexcept;
  };
  /// Messages to each rank, from all; nothing if some are not counted.
  using SentTo = std::unordered_map<std::int32_t, std::int64_t>;

  Index& index_of(const RankSnapshot& rank);
  /// By how many the number of the message exceeds the operations of `peer` that may have matched it or an earlier one;
  /// no value if that is not known.
  std::optional<std::int32_t> ahead(const RankSnapshot& rank, const NumberedMessage& message, const RankSnapshot& peer);
  const SentTo* sent_to();
  std::int64_t from_any_source(const RankSnapshot& rank, const RankSnapshot& peer);
  const std::vector<Posted>& posted_by(const RankSnapshot& rank);
  /// How many sends the receives that are remembered match: by the sender's name, from any source, either, or none.
  struct Wanted {
    std::int64_t by_name = 0, from_any = 0, either = 0, unwanted = 0;
  };
  /// Counts this for the sends to `receiver` in the last `calls` calls of `sender`.
  Wanted sends_wanted(const RankSnapshot& sender, const RankSnapshot& receiver, std::size_t calls);

  const Members& job_;
  std::vector<std::optional<Index>> indices_;  ///< of each snapshot
  std::optional<SentTo> sent_to_;
  bool all_counted_ = true;
};

}  // namespace bestride::inline telemetry
