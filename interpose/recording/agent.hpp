// SPDX-License-Identifier: Apache-2.0
#pragma once
// Starts the agent of this host: a process that reads the records of the job's ranks on this host (docs/watch.md).
#include <string>

namespace bestride::inline interpose {

/// True if the ranks of this job are watched: BESTRIDE_WATCH is set.
bool is_watched() noexcept;

/// Starts `bestride agent` for the job of the record file at `record_path`, unless another rank of this host has
/// started it, or the process that watches the job is on this host and reads the records itself. The agent is not a
/// child of this process, so no wait() of the application sees it. Called once, before MPI_Init. If there is no command
/// to start, one line reports this.
void start_agent(const std::string& record_path) noexcept;

}  // namespace bestride::inline interpose
