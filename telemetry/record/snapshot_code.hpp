// SPDX-License-Identifier: Apache-2.0
#pragma once
// Snapshots of ranks as bytes, in which an agent sends them to the process that watches the job.
#include "telemetry/record/byte_code.hpp"
#include "telemetry/record/snapshot.hpp"

namespace bestride::inline telemetry {

/// How much of a snapshot is sent. What a rank is doing now always is.
enum class SnapshotDetail : std::uint8_t {
  state,  ///< threads with their calls, communicators, requests, peers, messages
  full,   ///< also call sites and modules
};

void write_snapshot(ByteWriter& to, const RankSnapshot& rank, SnapshotDetail detail);
/// As the record reader, it leaves no index unchecked; values that can't be in a record file make `from` bad. Call
/// sites and modules that were not sent are taken from `before`, an earlier snapshot of the same process, or
/// null.
RankSnapshot read_snapshot(ByteReader& from, const std::vector<RankSnapshot>& before = {});

}  // namespace bestride::inline telemetry
