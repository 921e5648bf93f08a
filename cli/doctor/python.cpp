// SPDX-License-Identifier: Apache-2.0
// The doctor's check of a Python program. mpi4py looks for the MPI library itself when it is imported, which may go
// wrong only with a library preloaded.
#include <unistd.h>

#include <cstdlib>
#include <optional>

#include "cli/common/mpi_library.hpp"
#include "cli/common/preload.hpp"
#include "cli/common/shell.hpp"
#include "cli/doctor/checks.hpp"
#include "cli/doctor/script.hpp"
#include "perfmodel/profile/machine.hpp"

namespace bestride::inline cli {
namespace {

constexpr const char* python_check = "python";
constexpr int no_mpi4py = 3, failed = 4;

/// Prints the version of the MPI library, or the exception. MPI is not initialized, which needs a launcher on some
/// machines.
constexpr const char* import_mpi4py = R"(
try:
    try:
        import mpi4py
    except ImportError as error:
        raise SystemExit(3) if getattr(error, 'name', '') == 'mpi4py' else error
    mpi4py.rc.initialize = False
    from mpi4py import MPI
    print(MPI.Get_library_version())
except SystemExit:
    raise
except BaseException as error:
    print(type(error).__name__ + ': ' + (str(error).strip().splitlines() or [''])[0])
    raise SystemExit(4)
)";

/// The program itself, or what the first line of a script names. No value: it is no Python program, or can't be
/// started, which check_program() reports.
std::optional<Interpreter> python_of(const std::string& program) {
  const std::string found = find_program(program);
  if (found.empty()) return std::nullopt;
  const auto is_python = [](const std::string& word) { return base_name(word).starts_with("python"); };
  if (is_python(found) || is_python(resolved(found))) return Interpreter{{found}, found, true};
  const auto interpreter = interpreter_of(found);
  return interpreter && interpreter->found && is_python(interpreter->name) ? interpreter : std::nullopt;
}

/// `preload`: the value of LD_PRELOAD.
Output import_with(const std::string& preload, std::vector<std::string> command) {
  command.insert(command.end(), {"-c", import_mpi4py});
  const auto output = in_child(
      [&](int) {
        preload.empty() ? ::unsetenv("LD_PRELOAD") : ::setenv("LD_PRELOAD", preload.c_str(), 1);
        std::vector<char*> words;
        for (std::string& word : command) words.push_back(word.data());
        words.push_back(nullptr);
        ::execvp(words[0], words.data());
        ::_exit(127);
      },
      30);
  return output ? *output : Output{};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string error_text(const Output& output) {
  if (output.exit_code == failed) return first_line(output.text);
  return output.exit_code < 0 ? "it crashes, or takes longer than 30 s"
                              : "exit code " + std::to_string(output.exit_code);
}

}  // namespace

std::optional<std::string> check_python(Findings& findings, const Installation& installation,
                                        const std::vector<std::string>& job) {
  const std::optional<Interpreter> python = python_of(job[0]);
  if (!python || installation.preload.empty()) return std::nullopt;
  const Output bare = import_with(preload_without_bestride(), python->command);
  if (bare.exit_code == no_mpi4py) {
    findings.note(python_check, python->name + " has no mpi4py, so its MPI library is not known");
    return "";
  }
  if (bare.exit_code != 0 && bare.exit_code != failed) {
    std::string command;
    for (const std::string& word : python->command) command += shell_quoted(word) + " ";
    findings.problem(python_check, python->name + " fails when it imports mpi4py, also without the library: " +
                                       error_text(bare) + "; to see why: " + command + "-c 'from mpi4py import MPI'");
    return std::nullopt;
  }
  if (bare.exit_code != 0) {
    findings.problem(python_check, "mpi4py can't be imported, also without the library: " + error_text(bare) +
                                       "; mend that first, or load the MPI module of mpi4py");
    return "";
  }
  const std::string version = short_mpi_version(bare.text);
  const Output preloaded = import_with(preload_with(installation.preload), python->command);
  if (preloaded.exit_code != 0)
    findings.problem(python_check, "mpi4py (" + version + ") can be imported, but not with the library preloaded: " +
                                       error_text(preloaded) + "; run the program without 'bestride run'");
  else if (preloaded.text != bare.text)
    findings.problem(python_check, "with the library preloaded mpi4py loads another MPI library: " +
                                       short_mpi_version(preloaded.text) + ", not " + version +
                                       "; run the program without 'bestride run'");
  else if (const std::string abi = abi_of_version(bare.text); !installation.backend(abi))
    findings.note(python_check, "mpi4py can be imported with the library: " + version + "; " + why_no_backend(abi));
  else
    findings.ok(python_check, "mpi4py can be imported with the library: " + version);
  return bare.text;
}

}  // namespace bestride::inline cli
