// SPDX-License-Identifier: Apache-2.0
// The doctor's checks of the installation, the launcher, the profile and the settings.
#include <sstream>

#include "base/variables.hpp"
#include "cli/common/mpi_library.hpp"
#include "cli/common/shell.hpp"
#include "cli/doctor/checks.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline cli {
namespace {

/// "4.0.2" from the output of mpiexec --version; "" if not found.
std::string launcher_version(const std::string& path) {
  const auto answer = output_of({path, "--version"});
  if (!answer || answer->exit_code != 0) return "";
  std::istringstream words(answer->text);
  for (std::string word; words >> word;)
    if (word.find_first_of("0123456789") == 0 && word.find('.') != std::string::npos) return word;
  return "";
}

}  // namespace

void check_installation(Findings& findings, const Installation& installation) {
  if (const std::string why = installation.why_no_preload(); !why.empty()) return findings.problem("library", why);
  if (installation.version.empty())
    findings.problem("library",
                     installation.preload + " can't be loaded or is another program's; install the library again");
  else if (installation.version != BESTRIDE_VERSION)
    findings.problem("library", installation.preload + " is version " + installation.version +
                                    ", this command " BESTRIDE_VERSION "; install both from one package");
  else
    findings.ok("library", installation.preload + ", version " + installation.version);
  if (installation.backends.empty())
    findings.problem(
        "abi", "no libbestride-<abi>.so beside it, so every call would go directly to MPI; install the library again");
  for (const Backend& back : installation.backends) findings.ok("abi", back.abi + ": " + back.path);
}

LauncherKind check_launcher(Findings& findings) {
  for (const char* name : {"mpiexec", "mpirun", "srun"}) {
    const std::string path = find_program(name);
    if (path.empty()) continue;
    const LauncherKind kind = launcher_kind(path);
    const std::string version = launcher_version(path);
    const std::string whose = bestride::name(kind);
    findings.ok("launcher", path + (whose.empty() ? "" : ": " + whose) + (version.empty() ? "" : " " + version));
    return kind;
  }
  findings.note("launcher", "no mpiexec, mpirun or srun in PATH; load the MPI module the program was built with");
  return LauncherKind::unknown;
}

std::string check_installed_mpi(Findings& findings, const Installation& installation) {
  const std::vector<MpiLibrary> libraries = installed_mpi_libraries();
  if (libraries.empty())
    findings.problem("mpi", "no MPI library where the dynamic linker looks; load an MPI module or set LD_LIBRARY_PATH");
  for (const MpiLibrary& library : libraries) {
    const std::string what =
        library.path + ": " + (library.version.empty() ? "version unknown" : short_mpi_version(library.version));
    if (installation.backend(library.abi))
      findings.ok("mpi", what + ", ABI " + library.abi);
    else
      findings.note("mpi", what + "; " + why_no_backend(library.abi));
  }
  return libraries.empty() ? "" : libraries.front().version;
}

void check_profile(Findings& findings, const std::string& mpi_version) {
  const std::string path = find_profile_path();
  if (path.empty())
    return findings.note(
        "profile", "none, so the built-in one is used, which is cautious; 'bestride calibrate' measures this machine");
  const auto profile = MachineProfile::load(path);
  if (!profile) return findings.problem("profile", profile.error().text);
  const std::string stale = why_stale(profile->fingerprint, fingerprint_here(mpi_version));
  if (stale.empty())
    findings.ok("profile", path + ", measured on a machine like this");
  else
    findings.problem("profile", path + ": " + stale);
}

void check_settings(Findings& findings) {
  bool all_good = true;
  for (const UnknownVariable& unknown : unknown_variables()) {
    all_good = false;
    findings.problem("variable", unknown.name + " is not known" +
                                     (unknown.nearest.empty() ? "; 'bestride info --env' lists what is"
                                                              : "; did you mean " + unknown.nearest + "?"));
  }
  const Settings& settings = Settings::get_silently();
  for (const std::string& problem : settings.problems()) {
    all_good = false;
    findings.problem("variable", problem);
  }
  if (settings.flag("BESTRIDE_DISABLE")) {
    all_good = false;
    findings.note("variable", "BESTRIDE_DISABLE=1: every call goes directly to MPI; unset it to use the library");
  }
  if (all_good) findings.ok("variable", "no unknown or bad BESTRIDE_ variable");
}

}  // namespace bestride::inline cli
