// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages that were sent and that their receiver does not receive.
#include <optional>

#include "telemetry/detector/finding.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// A message of the last calls of `sender` for which `receiver` has posted no receive with its tag, while `receiver`
/// waits for one with another tag from `sender` on that communicator. Empty if there is none that is known.
std::optional<TagMismatch> find_tag_mismatch(const RankSnapshot& sender, const RankSnapshot& receiver);

/// True if `sender` has sent `receiver` more messages than that has received from it. False if it is not known: some
/// receives of `receiver` name no source.
bool has_unreceived_messages(const RankSnapshot& sender, const RankSnapshot& receiver);

/// True if the last message of `sender` to `receiver` matches many any-source probes that `receiver` has made.
bool passes_over_messages(const RankSnapshot& sender, const RankSnapshot& receiver);

}  // namespace bestride::inline telemetry
