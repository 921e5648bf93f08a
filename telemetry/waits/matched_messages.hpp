// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages that both of their ranks remember (telemetry/record/message_log.hpp).
#include <cstdint>
#include <vector>

#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {

/// A message in the records of both of its ranks. No member is null.
struct MatchedMessage {
  const RankSnapshot* sender;
  const RankSnapshot* receiver;
  const MessageSnapshot* sent;
  const MessageSnapshot* received;
};

/// The messages that both ranks remember, ordered by sender, receiver and number. The number of a message among those
/// of its pair identifies it. Of ranks that received from any source, or have more peers than a record can count, the
/// numbers of received messages are not known, and their messages are left out. O(messages log messages).
std::vector<MatchedMessage> matched_messages(const Members& members);

}  // namespace bestride::inline telemetry
