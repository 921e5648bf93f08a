// SPDX-License-Identifier: Apache-2.0
#pragma once
// Delays of messages after the later of their two posts, from the large messages that sender and receiver remember.
//
// A call that completes several requests returns when the last one is complete, so its end says of each message only
// that it was complete by then. The delay counts from the latest post of all messages of the call, so neither a late
// sender nor a late receiver makes a message slow.
//
// A call is left out if one of its messages is not known, or if a rank
// came to it so late that the transfer may have begun before, unseen. For messages of 64 KiB and more, which no MPI
// library sends by default before the receive is posted, the sender's call is a second bound, and the lower one counts.
//
// Hosts have no common clock. If sender and receiver wait for such a message alone, the shorter wait is its delay. Else
// their offset is chosen so that the fastest messages of both directions take equally long, if this is not longer than
// usual. So if a link is slow in one direction, half of the extra delay is attributed to each direction, and a pair of
// hosts with messages in one direction only is left out.
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct MessageDelay {
  std::int32_t from = -1, to = -1;  ///< ranks of MPI_COMM_WORLD
  std::uint32_t bytes = 0;
  double seconds = 0;  ///< at least 0; an upper bound unless `exact`
  bool exact = false;  ///< the call that completed it completed no message of another pair
};

/// The delays of matched_messages(). `after`: by world rank, in ticks of its clock; only messages that ended later
/// count.
std::vector<MessageDelay> message_delays(std::span<const RankSnapshot> ranks,
                                         const std::map<std::int32_t, std::uint64_t>& after = {});

}  // namespace bestride::inline telemetry
