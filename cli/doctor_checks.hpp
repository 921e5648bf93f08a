// SPDX-License-Identifier: Apache-2.0
#pragma once
// The doctor's checks, each about one thing and independent of the others' findings unless an argument says so.
#include <string>

#include "cli/findings.hpp"
#include "cli/installation.hpp"
#include "cli/launcher.hpp"

namespace bestride {

/// The library and its backs are there and of this command's version.
void check_installation(Findings& findings, const Installation& installation);
/// mpiexec or srun in PATH. Returns whose it is.
LauncherKind check_launcher(Findings& findings);
/// The MPI libraries the dynamic linker finds, when no program is given that names one. Returns the version text of the first.
std::string check_installed_mpi(Findings& findings, const Installation& installation);
/// How a program would be loaded, and which MPI with it. Returns that MPI's version text, "" if there is none.
std::string check_program(Findings& findings, const Installation& installation, const std::string& program, LauncherKind launcher);
/// The machine profile: there, whole, and measured on this machine with the MPI of that version text.
void check_profile(Findings& findings, const std::string& mpi_version);
/// The CUDA driver, its devices, the GPU kernels of this build, and the profile's curves of the GPU. No GPU is no problem.
void check_gpu(Findings& findings);
/// This host's processors; the topology file, if there is one.
void check_topology(Findings& findings);
/// The NICs that local ranks take.
void check_rails(Findings& findings);
/// BESTRIDE_* variables: unknown names, bad values, what is switched off.
void check_settings(Findings& findings);

}  // namespace bestride
