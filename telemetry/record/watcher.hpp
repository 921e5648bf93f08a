// SPDX-License-Identifier: Apache-2.0
#pragma once
// The name of the process that watches a job (BESTRIDE_WATCHER, RecordHeader::watcher): "host:pid:start time:records",
// which no other process has. The last part tells whether it can read the records that a process writes.
#include <string>

namespace bestride::inline telemetry {

/// The name of this host, at most 63 characters.
std::string own_host();
/// The name of this process as a watcher.
std::string own_watcher_name();
/// True if the process that `watcher` names runs on this host, in this pid namespace, as this user, and with this
/// /dev/shm: it reads the records of this process.
bool watcher_is_here(const std::string& watcher);

}  // namespace bestride::inline telemetry
