// SPDX-License-Identifier: Apache-2.0
#pragma once
// Knowledge about the programs that start MPI jobs: which MPI they belong to, and whether they pass the environment to
// the ranks.
#include <string>
#include <utility>
#include <vector>

namespace bestride::inline cli {

using Environment = std::vector<std::pair<std::string, std::string>>;

enum class LauncherKind { unknown, hydra, openmpi, srun };

/// Determined by the file name after resolving all links, of files named mpiexec or mpirun also by their content. A
/// wrapper script with another name is unknown.
LauncherKind launcher_kind(const std::string& path);
/// "Hydra, the mpiexec of MPICH and Intel MPI", "Open MPI's mpirun", "Slurm's srun", "".
std::string name(LauncherKind kind);

/// The messages to print before `command` is started with the variables `set`, one line each. Changes both as far as
/// that is needed for the variables to reach the ranks.
std::vector<std::string> prepare_launcher(std::vector<std::string>& command, Environment& set);

}  // namespace bestride::inline cli
