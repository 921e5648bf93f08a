// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages that were sent and that their receiver does not receive.
#include <cstdint>
#include <optional>
#include <unordered_set>
#include <vector>

#include "telemetry/detector/finding.hpp"
#include "telemetry/record/snapshot.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// Communicator, peer and tag of a message, as one of its ranks gives them.
struct Envelope {
  std::uint64_t uid;  ///< of the communicator
  std::int32_t peer;  ///< rank in it, or any_rank
  std::int32_t tag;
  bool operator==(const Envelope&) const = default;
};

/// The receives of a rank that its snapshot has. Made once for all of its senders.
class Receives {
 public:
  /// `receiver` must outlive this.
  explicit Receives(const RankSnapshot& receiver);

  /// A message of `sender` for which the receiver has posted no receive, while it waits for one from `sender` with
  /// another tag on that communicator, or, with `any_communicator`, with that tag on another one. Of several, one of
  /// the amount that the receiver expects, and of those the oldest one; the newest one if it is not known how many of
  /// the messages were received. If the receiver awaits a tag that it has never received from `sender`, also one with a
  /// tag for which it has posted receives before. Empty if there is none that is known. `left_out` is set if the other
  /// messages of the sender, to and from any rank, show that it has not sent the awaited one and gone on.
  std::optional<TagMismatch> find_mismatch(const RankSnapshot& sender, bool any_communicator);

  /// The receiver waits for a message of `sender`. Not empty if it has received messages of `sender` before, and
  /// `sender` has sent one with this tag on this communicator to a rank that never receives from it; or if `sender` has
  /// never sent it a message, and another rank, whose messages it has received before, has sent it one with this tag,
  /// for which it has posted no receive. So whom a rank names always tells which of them is wrong.
  std::optional<WrongPeer> find_wrong_peer(const RankSnapshot& sender, const Members& members);

 private:
  struct Hash {
    std::size_t operator()(const Envelope& e) const noexcept {
      return (e.uid ^ (static_cast<std::uint64_t>(static_cast<std::uint32_t>(e.peer)) << 32 |
                       static_cast<std::uint32_t>(e.tag))) *
             0x9e3779b97f4a7c15;
    }
  };
  struct Awaited : Envelope {
    std::uint64_t bytes;  ///< 0: not known
  };
  void find_posted();
  bool has_taken(std::uint64_t uid, std::int32_t from, std::int32_t tag);
  /// The tags of the receives from `sender` on a communicator that are complete, as far as the snapshot shows.
  std::vector<std::int32_t> tags_from(const RankSnapshot& sender, std::uint64_t uid) const;
  /// The messages of `sender` that were not received yet; -1: not known, some calls are not counted by peer.
  std::int64_t missing_from(const RankSnapshot& sender) const;
  /// Receives from `sender` that are posted and not complete.
  std::int64_t pending_from(const RankSnapshot& sender) const;
  /// Receives from `sender` that are complete.
  std::int64_t received_from(const RankSnapshot& sender) const;
  std::optional<WrongPeer> find_wrong_destination(const RankSnapshot& sender, const Awaited& awaited,
                                                  const Members& members) const;
  std::optional<WrongPeer> find_wrong_source(const RankSnapshot& named, const Awaited& awaited,
                                             const Members& members) const;

  const RankSnapshot& receiver_;
  /// Finished, present and requests; found when there is a message to look for.
  std::optional<std::unordered_set<Envelope, Hash>> posted_;
  std::vector<Awaited> awaited_;  ///< those in which a thread is, or for which one waits
};

/// A rank in a collective call is `peer` of a message for which `waiter` waits, in one of its calls: to receive it, or
/// until it is received. How many more such messages (communicator, rank, and tag unless it is a new one) `peer` has
/// begun before this collective call, since the one before it, than the last two times before it came to this call at
/// the same place. Empty: it has not come there twice with the same number of them, as far as its snapshot shows.
std::optional<std::int64_t> more_than_usual(const RankSnapshot& waiter, const RankSnapshot& peer, bool receives);

/// `waiter` waits for a message of this kind, and a rank in the collective call `collective` waits for it. Not empty if
/// it has begun more messages of that kind since its last call of this function on that communicator than between the
/// ones before, which were equally many both times: it has left the call out.
std::optional<OmittedCall> omitted_call(const RankSnapshot& waiter, const WaitCondition& collective, bool receives);

/// How many more messages a rank has received from `hub` than sent to it, or has posted receives for; empty if that is
/// not known.
std::optional<std::int64_t> unanswered(const RankSnapshot& rank, const RankSnapshot& hub);

/// True if `sender` has sent `receiver` more messages than that has received from it. False if it is not known: some
/// receives of `receiver` name no source.
bool has_unreceived_messages(const RankSnapshot& sender, const RankSnapshot& receiver);

/// True if the last message of `sender` to `receiver` matches many any-source probes that `receiver` has made.
bool passes_over_messages(const RankSnapshot& sender, const RankSnapshot& receiver);

}  // namespace bestride::inline telemetry
