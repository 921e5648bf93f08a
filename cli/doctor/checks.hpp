// SPDX-License-Identifier: Apache-2.0
#pragma once
// The doctor's checks. Each checks one thing and is independent of other findings unless an argument passes them.
#include <optional>
#include <string>
#include <vector>

#include "cli/common/installation.hpp"
#include "cli/common/launcher.hpp"
#include "cli/doctor/findings.hpp"

namespace bestride::inline cli {

/// The preload library and its backends exist and have this command's version.
void check_installation(Findings& findings, const Installation& installation);
/// LD_PRELOAD of this environment: its libraries can be loaded, and none is another installation's.
void check_preload(Findings& findings, const Installation& installation);
/// mpiexec or srun in PATH. Returns which MPI it belongs to.
LauncherKind check_launcher(Findings& findings);
/// The MPI libraries that the dynamic linker finds, if no program that names one is given. Returns the version text of
/// the first.
std::string check_installed_mpi(Findings& findings, const Installation& installation);
/// How a program would be loaded, and which MPI with it. Returns the version text of that MPI, "" if there is none.
std::string check_program(Findings& findings, const Installation& installation, const std::string& program,
                          LauncherKind launcher);
/// If the program runs Python: whether mpi4py can be imported with the library preloaded, compared with an import
/// without it. `job`: the program and its arguments. Returns the version text of mpi4py's MPI, "" if it is not known;
/// no value: it is no Python program, or Python itself fails.
std::optional<std::string> check_python(Findings& findings, const Installation& installation,
                                        const std::vector<std::string>& job);
/// System calls that a seccomp filter or a container may forbid, tried in child processes.
void check_kernel(Findings& findings);
/// The machine profile: exists, is complete, and was measured on this machine with the MPI of that version text.
void check_profile(Findings& findings, const std::string& mpi_version);
/// The CUDA driver, its devices, the GPU kernels of this build, and the GPU curves of the profile. A missing GPU is not
/// a problem.
void check_gpu(Findings& findings);
/// The processors of this host; the topology file, if there is one.
void check_topology(Findings& findings);
/// The NICs that local ranks use.
void check_rails(Findings& findings);
/// BESTRIDE_* variables: unknown names, invalid values, disabled features.
void check_settings(Findings& findings);

}  // namespace bestride::inline cli
