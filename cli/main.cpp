// SPDX-License-Identifier: Apache-2.0
// The bestride command. This file only registers the subcommands; each has its own file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "cli/calibrate/calibrate.hpp"
#include "cli/common/command.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/explain/explain.hpp"
#include "cli/info/info.hpp"
#include "cli/report/report.hpp"
#include "cli/run/run.hpp"

namespace {

/// Cause and remedy. The messages of CLI11 name neither a surplus word nor an unknown command.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  if (!extras.empty() && app.get_subcommands().empty())
    return "there is no command '" + extras[0] + "'; 'bestride --help' lists them";
  if (extras.empty()) return std::string(error.what()) + "; 'bestride --help' shows what is possible";
  const bool command = app.got_subcommand("run") && !extras[0].starts_with('-');
  return "'" + extras[0] + "' is not expected here; " +
         (command ? "write the job's command after '--': bestride run -- mpiexec -n 4 ./program"
                  : "'bestride --help' shows what is possible");
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace bestride;
  CLI::App app("makes MPI derived datatypes fast without recompiling the job", "bestride");
  app.set_version_flag("--version", "bestride " BESTRIDE_VERSION);
  app.require_subcommand(1);
  std::vector<std::string> words(argv + 1, argv + argc);
  add_run(app, words);
  add_explain(app);
  add_info(app);
  add_doctor(app);
  add_report(app);
  add_calibrate(app);
  try {
    std::reverse(words.begin(), words.end());  // the order that CLI11 expects in a vector
    app.parse(words);
  } catch (const CLI::RuntimeError& ended) {
    std::fflush(stdout);
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    std::fprintf(stderr, "bestride: %s\n", usage_error(app, error).c_str());
    return exit_usage;
  }
  return exit_good;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bestride: %s\n", error.what());
  return 2;
}
