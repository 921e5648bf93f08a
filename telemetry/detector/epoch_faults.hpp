// SPDX-License-Identifier: Apache-2.0
#pragma once
// Epochs of windows that do not fit each other: a rank starts an access epoch to one that does not expose its window to
// it, or exposes its window to one that starts or completes no access epoch.
#include <cstdint>
#include <vector>

#include "telemetry/detector/finding.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

struct EpochFault {
  EpochMismatch mismatch;
  std::vector<std::int32_t> blamed;  ///< one of the two ranks or, if nothing tells which, both
  bool waits = false;                ///< the one of them that has begun its epoch waits for the other one's call
};

/// Pairs of ranks, none of which goes on, of which one has begun an epoch, and the other one does not come to its call
/// for it, because it has begun that call's epoch without the first one, or has gone on to other calls than those of
/// epochs. Pairs are left out if the other one may yet come to its call after the call for which it waits itself.
std::vector<EpochFault> find_epoch_faults(const std::vector<const RankSnapshot*>& ranks);

/// The ranks to blame for all of these: the one that is part of all pairs, if there is only one.
std::vector<std::int32_t> blamed_for(const std::vector<EpochFault>& faults);

}  // namespace bestride::inline telemetry
