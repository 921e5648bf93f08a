// SPDX-License-Identifier: Apache-2.0
#pragma once
// Snapshots of ranks as bytes, in which an agent sends them to the process that watches the job.
#include "telemetry/record/byte_code.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// A partial snapshot is sent without what seldom changes: modules, the texts that say which process it is, except its
/// host, and of call sites all but their number and time of calls.
void write_snapshot(ByteWriter& to, const RankSnapshot& rank);
/// As the record reader, it leaves no index unchecked; values that can't be in a record file make `from` bad.
RankSnapshot read_snapshot(ByteReader& from);
/// Moves what `rank`, a partial snapshot, does not have from `before`, the last one of the same process, or null. It is
/// still partial if `before` was, or if there are new call sites.
void complete(RankSnapshot& rank, RankSnapshot* before);

}  // namespace bestride::inline telemetry
