// SPDX-License-Identifier: Apache-2.0
#pragma once
// Snapshots of ranks as bytes, in which an agent sends them to the process that watches the job.
#include "telemetry/record/byte_code.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// A partial snapshot omits what seldom changes: modules, the texts that identify the process except its host, and all
/// fields of call sites but the number and time of their calls.
void write_snapshot(ByteWriter& to, const RankSnapshot& rank);
/// Like the record reader, it checks every index; values that can't be in a record file make `from` bad.
RankSnapshot read_snapshot(ByteReader& from);
/// Moves the fields that `rank`, a partial snapshot, lacks from `before`, the last one of the same process, or null.
/// `rank` stays partial if `before` was, or if there are new call sites.
void complete(RankSnapshot& rank, RankSnapshot* before);

}  // namespace bestride::inline telemetry
