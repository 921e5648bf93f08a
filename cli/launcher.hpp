// SPDX-License-Identifier: Apache-2.0
#pragma once
// What is known of the programs that start MPI jobs: whose they are, and whether the environment reaches the ranks.
#include <string>
#include <utility>
#include <vector>

namespace bestride {

using Environment = std::vector<std::pair<std::string, std::string>>;

enum class LauncherKind { unknown, hydra, openmpi, srun };

/// By the name of the file behind all links. A wrapper script is unknown.
LauncherKind launcher_kind(const std::string& path);
/// "MPICH's mpiexec (hydra)", "Open MPI's mpirun", "Slurm's srun", "".
std::string name(LauncherKind kind);

/// What has to be said before `command` is started with the variables `set`, one line each; adds to `set` what the launcher
/// needs to pass them on. Hydra hands every rank its own environment, so it needs nothing.
std::vector<std::string> prepare_launcher(const std::string& path, const std::vector<std::string>& command, Environment& set);

}  // namespace bestride
