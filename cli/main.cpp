// SPDX-License-Identifier: Apache-2.0
// The bestride command. This file only registers the subcommands; each has its own file.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/nearest_name.hpp"
#include "cli/agent/agent.hpp"
#include "cli/calibrate/calibrate.hpp"
#include "cli/common/command.hpp"
#include "cli/doctor/doctor.hpp"
#include "cli/explain/explain.hpp"
#include "cli/info/info.hpp"
#include "cli/report/report.hpp"
#include "cli/run/run.hpp"
#include "cli/try/try.hpp"
#include "cli/where/where.hpp"

namespace {

/// Cause and remedy. The messages of CLI11 name neither a surplus word nor an unknown command.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<std::string> extras = app.remaining(/*recurse=*/true);
  const auto commands = app.get_subcommands();
  if (!extras.empty() && commands.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* const known : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(known->get_name());
    const std::string nearest = bestride::nearest_name(extras[0], names, 2);
    return "there is no command '" + extras[0] + "'; " +
           (nearest.empty() ? "'bestride --help' lists them" : "did you mean '" + nearest + "'?");
  }
  const std::string help = "; see 'bestride " + (commands.empty() ? "" : commands[0]->get_name() + " ") + "--help'";
  return extras.empty() ? error.what() + help : "'" + extras[0] + "' is not expected here" + help;
}

/// "help X" and "version" are what others call X --help and --version.
void accept_words_for_options(std::vector<std::string>& words) {
  if (words.empty()) return;
  if (words[0] == "version") words[0] = "--version";
  if (words[0] != "help") return;
  words.erase(words.begin());
  words.emplace_back("--help");
}

/// An option with an empty value, such as --output "$UNSET", is never what the user wanted.
void refuse_empty_values(CLI::App& app) {
  for (CLI::App* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* const option : command->get_options([](const CLI::Option*) { return true; }))
      if (option->get_expected_min() > 0)
        option->check(CLI::Validator(
            [](std::string& text) {
              return text.find_first_not_of(" \t") == std::string::npos ? std::string("the value is empty; give one")
                                                                        : std::string();
            },
            ""));
}

}  // namespace

int main(int argc, char** argv) try {
  using namespace bestride;
  CLI::App app("explains hangs and crashes of MPI jobs and makes their communication faster, without recompiling them",
               "bestride");
  app.set_version_flag("-V,--version", "bestride " BESTRIDE_VERSION);
  app.require_subcommand(1);
  std::vector<std::string> words(argv + 1, argv + argc);
  accept_words_for_options(words);
  add_run(app, words);
  add_try(app, words);
  add_explain(app);
  add_info(app);
  add_doctor(app);
  add_report(app);
  add_where(app);
  add_calibrate(app);
  add_agent(app);
  refuse_empty_values(app);
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
