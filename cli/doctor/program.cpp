// SPDX-License-Identifier: Apache-2.0
// The doctor's check of a program: would a preloaded library be between the program and its MPI?
#include <unistd.h>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>

#include "cli/common/elf_file.hpp"
#include "cli/common/intercepted.hpp"
#include "cli/common/mpi_library.hpp"
#include "cli/common/shell.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/script.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* program_check = "program";

bool has_own_mpi(const ElfFile& file) {
  return file.defines.contains("PMPI_Init") || file.defines.contains("MPI_Init");
}

std::size_t mpi_functions(const std::set<std::string>& names) {
  return static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](const auto& name) {
    return name.starts_with("MPI_") || name.starts_with("PMPI_");
  }));
}

void check_static(Findings& findings, const std::string& path, const ElfFile& file) {
  if (has_own_mpi(file))
    findings.problem(
        program_check,
        path + " has a static MPI in it, which no preloaded library can reach; link it with the shared MPI library");
  else if (file.stripped)
    findings.problem(program_check,
                     path + " is statically linked, so nothing can be preloaded into it; link it dynamically");
  else
    findings.note(program_check,
                  path + " is statically linked and has no MPI in it; the library has nothing to do there");
}

void check_without_mpi(Findings& findings, const std::string& path, const ElfFile& file) {
  if (has_own_mpi(file))
    return findings.problem(
        program_check,
        path + " has a static MPI in it, which no preloaded library can reach; link it with the shared MPI library");
  if (file.imports.contains("dlopen"))
    return findings.note(
        program_check,
        path +
            " is linked with no MPI but can load one at run time (as python does): calls are then seen, unless "
            "it is loaded with RTLD_DEEPBIND; run it with --report to see");
  findings.note(program_check, path + " is not an MPI program; the library has nothing to do there");
}

bool launcher_fits(LauncherKind launcher, const std::string& abi) {
  if (abi == "mpich") return launcher != LauncherKind::openmpi;
  if (abi == "openmpi") return launcher != LauncherKind::hydra;
  return true;
}

void check_mpi(Findings& findings, const Installation& installation, const MpiLibrary& library, LauncherKind launcher) {
  const std::string description = library.soname + " => " + library.path +
                                  (library.version.empty() ? "" : ": " + short_mpi_version(library.version));
  if (installation.backend(library.abi))
    findings.ok("mpi", description + ", ABI " + library.abi);
  else
    findings.problem("mpi", description + "; " + why_no_backend(library.abi));
  if (!launcher_fits(launcher, library.abi))
    findings.problem("launcher", name(launcher) +
                                     " is first in PATH, but the program's MPI is another: every rank would start "
                                     "alone; load the module of its MPI");
}

/// "calls 11 MPI functions (2 by Fortran bindings), of which 4 can be accelerated and 3 more are intercepted".
std::string calls_text(const ElfFile& file) {
  const std::size_t functions = mpi_functions(file.imports) + file.fortran_imports.size();
  if (functions == 0) return "calls MPI through its libraries only";
  std::size_t accelerated = 0, watched = 0;
  for (const auto* names : {&file.imports, &file.fortran_imports})
    for (const std::string& name : *names) {
      const std::string handling = handling_of(name);
      const bool gains = handling == "accelerate" || handling == "collective";
      accelerated += gains;
      watched += !handling.empty() && !gains;
    }
  const std::string fortran =
      file.fortran_imports.empty() ? "" : " (" + std::to_string(file.fortran_imports.size()) + " by Fortran bindings)";
  return "calls " + std::to_string(functions) + " MPI functions" + fortran + ", of which " +
         std::to_string(accelerated) + " can be accelerated and " + std::to_string(watched) + " more are intercepted";
}

/// The sanitizer's library checks at start that no other library was loaded before it, which a preloaded one is. Ours
/// switches that off, unless the program has switches of its own (interpose/preload/sanitizer.cpp).
void check_sanitizer(Findings& findings, const std::string& path, const ElfFile& file) {
  const bool sanitized = std::any_of(file.needed.begin(), file.needed.end(), [](const std::string& soname) {
    return soname.starts_with("libasan.so") || soname.starts_with("libclang_rt.asan");
  });
  if (!sanitized) return;
  const char* const options = std::getenv("ASAN_OPTIONS");
  if (!file.defines.contains("__asan_default_options") ||
      (options && std::string(options).find("verify_asan_link_order=0") != std::string::npos))
    return findings.ok(program_check, path + " is built with AddressSanitizer, whose check of the link order is off");
  findings.problem(
      program_check,
      path +
          " is built with AddressSanitizer and defines __asan_default_options, so that it ends at start if "
          "a library is preloaded; set ASAN_OPTIONS=verify_asan_link_order=0 (added to its value, if it is "
          "set)");
}

void check_symbols(Findings& findings, const std::string& path, const ElfFile& file) {
  findings.ok(program_check, path + ": dynamically linked, " + calls_text(file));
  const std::size_t own = mpi_functions(file.defines);
  if (own > 0)
    findings.note(program_check, path + " defines " + std::to_string(own) + " MPI functions itself, such as " +
                                     *file.defines.lower_bound("MPI_") +
                                     " (a tool linked into it?): calls of these don't pass the library");
}

/// The MPI library among the loaded libraries; "" if there is none. Reports missing libraries.
std::string check_libraries(Findings& findings, const ElfFile& file,
                            const std::map<std::string, std::string>& libraries) {
  std::string mpi;
  for (const auto& [soname, found] : libraries) {
    if (found.empty())
      findings.problem("libraries",
                       soname + " is not found by the dynamic linker; load its module or set LD_LIBRARY_PATH");
    if (!abi_of_soname(soname).empty()) mpi = soname;
  }
  // If the dynamic linker could not be run, use the program's own list.
  for (const std::string& soname : file.needed)
    if (mpi.empty() && !abi_of_soname(soname).empty()) mpi = soname;
  return mpi;
}

std::string check_elf(Findings& findings, const Installation& installation, const std::string& path,
                      const ElfFile& file, LauncherKind launcher) {
  if (file.interpreter.empty()) return check_static(findings, path, file), "";
  const auto libraries = loaded_libraries(file.interpreter, path);
  const std::string mpi = check_libraries(findings, file, libraries);
  check_sanitizer(findings, path, file);
  if (mpi.empty()) return check_without_mpi(findings, path, file), "";
  check_symbols(findings, path, file);
  const auto found = libraries.find(mpi);
  if (found != libraries.end() && found->second.empty()) return "";  // already reported above
  const MpiLibrary library = ask_mpi_library(mpi, found == libraries.end() ? "" : found->second);
  check_mpi(findings, installation, library, launcher);
  return library.version;
}

}  // namespace

std::string check_program(Findings& findings, const Installation& installation, const std::string& program,
                          LauncherKind launcher) {
  const std::string found = find_program(program);
  if (found.empty()) {
    bool exists = false;
    const std::string why = why_no_program(program, &exists);
    // A name without a folder is looked for in PATH only.
    const bool is_here = !exists && access(program.c_str(), F_OK) == 0;
    findings.problem(program_check, exists    ? "'" + program + "' can't be run: " + why
                                    : is_here ? "'" + program + "' is in this folder, not in PATH; give ./" + program +
                                                    ", or the interpreter that runs it, such as python"
                                              : "there is no program '" + program +
                                                    "' that can be run; give its path, or a name in PATH");
    return "";
  }
  const std::string path = resolved(found);
  if (const auto interpreter = interpreter_of(path)) {
    if (interpreter->found)
      findings.note(program_check,
                    found + " is a script for " + interpreter->name + "; give the program it runs to know more");
    else
      findings.problem(program_check, found + " can't be started: " + why_not_started(*interpreter));
    return "";
  }
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & (S_ISUID | S_ISGID)))
    findings.problem(program_check, path + " is set-user-id, so the dynamic linker ignores LD_PRELOAD; clear the bit");
  const auto file = ElfFile::read(path);
  if (file) return check_elf(findings, installation, path, *file, launcher);
  findings.problem(program_check, file.error().text);
  return "";
}

}  // namespace bestride::inline cli
