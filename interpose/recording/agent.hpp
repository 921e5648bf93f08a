// SPDX-License-Identifier: Apache-2.0
#pragma once
// The start of the agent of this host: a process that reads the records of a job's ranks here (docs/watch.md).
#include <string>

namespace bestride::inline interpose {

/// True if the ranks of this job are watched: BESTRIDE_WATCH is set.
bool is_watched() noexcept;

/// Starts `bestride agent` for the job of the record file at `record_path`, unless another rank of this host has
/// started it, or the process that watches the job is on this host and reads the records itself. The agent is no child
/// of this process: no wait() of the application sees it. Called once, before MPI_Init. Without a command to start, one
/// line says so.
void start_agent(const std::string& record_path) noexcept;

}  // namespace bestride::inline interpose
