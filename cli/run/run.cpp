// SPDX-License-Identifier: Apache-2.0
#include "cli/run/run.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "base/replace_file.hpp"
#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/common/installation.hpp"
#include "cli/common/job_words.hpp"
#include "cli/common/launcher.hpp"
#include "cli/common/named_profile.hpp"
#include "cli/common/number.hpp"
#include "cli/common/output_file.hpp"
#include "cli/common/preload.hpp"
#include "cli/common/shell.hpp"
#include "cli/watch/agents.hpp"
#include "cli/watch/watch.hpp"
#include "telemetry/record/watcher.hpp"

namespace bestride::inline cli {
namespace {

struct RunOptions {
  bool report = false, watch = false, disable = false, all_ranks = false, dry_run = false;
  std::string profile, strategy, log, on_fault, verdict_folder, metrics;
  double metrics_period = 15;
  std::size_t fan_out = 0;  ///< 0: the usual one
  double patience = 0;      ///< seconds; 0: the usual one
  std::vector<std::string> command;

  /// This process stays as the launcher's parent.
  bool watches() const { return watch || report || !metrics.empty(); }
};

constexpr const char* nothing_to_watch =
    "leaves every call to the MPI library, so nothing is watched and no report is written";

/// The choices of a variable, for CLI11's validation.
std::vector<std::string> choices_of(const std::string& variable) {
  std::vector<std::string> choices;
  for (const Variable& known : variables()) {
    if (variable != known.name) continue;
    const std::string all = known.choices;
    for (std::size_t from = 0; from <= all.size();) {
      const std::size_t end = std::min(all.find('|', from), all.size());
      choices.push_back(all.substr(from, end - from));
      from = end + 1;
    }
  }
  return choices;
}

Environment environment_of(const RunOptions& options, const Installation& installation, const Agents* agents) {
  Environment set;
  set.emplace_back("LD_PRELOAD", preload_with(installation.preload));
  if (options.report) set.emplace_back("BESTRIDE_REPORT", "1");
  if (options.watches()) {
    // The watcher reads the records once more after the job, and removes them.
    set.emplace_back("BESTRIDE_RECORD", "keep");
    set.emplace_back("BESTRIDE_WATCHER", own_watcher_name());
  }
  if (agents && !agents->addresses().empty()) {
    set.emplace_back("BESTRIDE_WATCH", agents->addresses());
    set.emplace_back("BESTRIDE_WATCH_KEY", agents->keys());
    set.emplace_back("BESTRIDE_COMMAND", installation.executable);
  }
  if (options.disable) set.emplace_back("BESTRIDE_DISABLE", "1");
  // 1: the user asserts it. auto: the library finds out.
  if (options.all_ranks)
    set.emplace_back("BESTRIDE_ALL_RANKS", "1");
  else if (!std::getenv("BESTRIDE_ALL_RANKS") && !options.disable)
    set.emplace_back("BESTRIDE_ALL_RANKS", "auto");
  if (!options.profile.empty()) set.emplace_back("BESTRIDE_PROFILE", named_profile(options.profile));
  if (!options.strategy.empty()) set.emplace_back("BESTRIDE_STRATEGY", options.strategy);
  if (!options.log.empty()) set.emplace_back("BESTRIDE_LOG", options.log);
  return set;
}

WatchOptions watch_options(const RunOptions& options) {
  WatchOptions watch;
  const std::string& action = !options.on_fault.empty() ? options.on_fault : Settings::get().text("BESTRIDE_ON_FAULT");
  if (action == "abort") {
    watch.on_fault = OnFault::abort;
  } else if (!action.empty() && action != "report") {
    watch.on_fault = OnFault::command;
    watch.command = action;
  }
  watch.folder = options.verdict_folder;
  if (options.patience > 0) watch.patience = options.patience;
  watch.outputs = {options.report, options.verdict_folder, options.metrics, options.metrics_period};
  return watch;
}

[[noreturn]] void fail_without_launcher(const RunOptions& options) {
  const std::string& name = options.command[0];
  bool exists = false;
  std::string why = why_no_program(name, &exists);
  if (options.report && name.ends_with(".json"))
    why =
        "there is no such program; --report takes no value: BESTRIDE_REPORT_FILE names the file, --verdict-folder the "
        "folder";
  fail("can't run '" + name + "': " + why, exists ? exit_no_program : exit_not_found);
}

/// The file that rank 0 writes, as far as this host can tell: the rank may run on another one.
void check_report_file() {
  namespace fs = std::filesystem;
  const std::string& file = Settings::get().text("BESTRIDE_REPORT_FILE");
  std::error_code error;
  if (file.empty() || !fs::exists(fs::absolute(file).parent_path(), error)) return;
  if (const std::string why = why_not_opened(file); !why.empty())
    fail("can't write BESTRIDE_REPORT_FILE='" + file + "': " + why + "; name another file");
}

/// Found out before the job, not after it. Without --report, files are written only if something is wrong.
void check_outputs(const RunOptions& options) {
  if (options.report) check_report_file();
  if (!options.metrics.empty())
    if (const std::string why = why_not_writable(options.metrics); !why.empty())
      fail("can't write '" + options.metrics + "': " + why + "; name another file with --metrics");
  if (!options.report && options.verdict_folder.empty()) return;
  const std::string folder = options.verdict_folder.empty() ? "." : options.verdict_folder;
  if (const std::string why = why_not_writable(folder + "/bestride-" + std::to_string(::getpid()) + ".json");
      !why.empty())
    fail("can't write into " + (folder == "." ? "the working folder" : "the folder '" + folder + "'") + ": " + why +
         "; name another one with --verdict-folder");
}

/// A misspelled action would otherwise be found out by the shell after the fault. Only a single word is checked: longer
/// texts are for the shell.
void check_on_fault(const std::string& action) {
  if (action.empty() || action == "report" || action == "abort") return;
  const bool one_word = action.find_first_of(" \t\n;|&<>$`'\"\\(){}") == std::string::npos;
  bool exists = false;
  if (one_word && find_program(action).empty())
    fail("can't run '" + action + "' of --on-fault: " + why_no_program(action, &exists) +
         "; write report, abort, or a shell command that gets the verdict as JSON");
}

/// BESTRIDE_DISABLE=1: the job runs, but leaves no records.
void leave_unwatched(RunOptions& options) {
  std::fprintf(stderr, "bestride: BESTRIDE_DISABLE=1 %s; unset it\n", nothing_to_watch);
  options.watch = options.report = false;
  options.metrics.clear();
}

void run(RunOptions options) {
  if (options.command.empty()) fail("no command to run; for example: bestride run mpiexec -n 4 ./program");
  if (options.watches() && options.disable) fail(std::string("--disable ") + nothing_to_watch + "; leave it out");
  if (!options.watches() && !options.on_fault.empty()) fail("--on-fault needs --watch or --report");
  if (!options.watches() && !options.verdict_folder.empty()) fail("--verdict-folder needs --watch or --report");
  if (!options.watches() && options.patience > 0) fail("--patience needs --watch or --report");
  if (!options.watches() && options.fan_out > 0) fail("--fan-out needs --watch or --report");
  check_on_fault(options.on_fault);
  const Installation installation = Installation::find();
  if (const std::string why = installation.why_no_preload(); !why.empty()) fail(why);
  const std::string launcher = find_program(options.command[0]);
  if (launcher.empty()) fail_without_launcher(options);
  if (options.watches() && Settings::get().flag("BESTRIDE_DISABLE")) leave_unwatched(options);
  if (!options.dry_run) check_outputs(options);
  if (options.watches() && Settings::get().text("BESTRIDE_RECORD") == "off")
    std::fprintf(stderr,
                 "bestride: BESTRIDE_RECORD=off is overridden, because --watch, --report and --metrics read the ranks' "
                 "records; to record nothing, leave these options out\n");

  std::optional<Agents> agents;
  if (options.watches() && !options.dry_run)
    agents.emplace(options.fan_out > 0 ? options.fan_out : Agents::usual_fan_out);
  Environment set = environment_of(options, installation, agents ? &*agents : nullptr);
  for (const std::string& note : prepare_launcher(options.command, set))
    std::fprintf(stderr, "bestride: %s\n", note.c_str());
  if (options.dry_run) {
    for (const auto& [name, value] : set) std::printf("%s=%s\n", name.c_str(), shell_quoted(value).c_str());
    for (std::size_t i = 0; i < options.command.size(); ++i)
      std::printf("%s%s", i ? " " : "", shell_quoted(options.command[i]).c_str());
    std::printf("\n");
    return;
  }
  for (const auto& [name, value] : set) ::setenv(name.c_str(), value.c_str(), 1);
  std::fflush(stdout);
  if (options.watches()) finish(watch(launcher, options.command, watch_options(options), *agents));
  std::vector<char*> words;
  for (const std::string& word : options.command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execv(launcher.c_str(), words.data());
  fail("can't run '" + launcher + "': " + std::strerror(errno), exit_not_found);
}

}  // namespace

void add_run(CLI::App& app, std::vector<std::string>& words) {
  const auto options = std::make_shared<RunOptions>();
  options->command = take_job(words, "run",
                              {"--profile", "--strategy", "--log", "--on-fault", "--verdict-folder", "--metrics",
                               "--metrics-period", "--fan-out", "--patience"});
  CLI::App* const command =
      app.add_subcommand("run", "start a job with the library preloaded: bestride run mpiexec -n 4 ./program");
  command->add_flag("--report", options->report,
                    "at the end of the job, print and write what was done and where MPI time went; implies --watch "
                    "(docs/report.md)");
  command->add_flag("--watch", options->watch,
                    "say which rank crashed or hangs, where and why; as a file, too (docs/watch.md)");
  command
      ->add_option(
          "--on-fault", options->on_fault,
          "with --watch or --report: report (default), abort (end a job that can't go on), or a command that gets the "
          "verdict as JSON")
      ->type_name("ACTION");
  command->add_option("--verdict-folder", options->verdict_folder, "with --watch or --report: where files are written")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--metrics", options->metrics,
                   "write MPI time as OpenMetrics text, again every --metrics-period; implies --watch")
      ->type_name("FILE");
  command->add_option("--metrics-period", options->metrics_period, "seconds; default 15")
      ->type_name("SECONDS")
      ->check(number(least_seconds, most_seconds));
  command
      ->add_option(
          "--patience", options->patience,
          "with --watch: how long a rank may compute, sleep or move data outside MPI, while others wait for it, "
          "before that is called a hang; default 60")
      ->type_name("SECONDS")
      ->check(number(1, most_seconds));
  command
      ->add_option("--fan-out", options->fan_out,
                   "with --watch: how many agents are connected to this process, and to each that relays for others; "
                   "default 32")
      ->type_name("AGENTS")
      ->check(whole_number(1, 65536));
  command->add_flag("--disable", options->disable, "preload, but leave every call to the MPI library (to compare)");
  command->add_flag("--all-ranks", options->all_ranks,
                    "every rank has the preload library (BESTRIDE_ALL_RANKS=1): permit hierarchical collectives");
  command->add_option("--profile", options->profile, "machine profile to use")->type_name("FILE");
  command->add_option("--strategy", options->strategy, "force one strategy")
      ->check(CLI::IsMember(choices_of("BESTRIDE_STRATEGY")));
  command->add_option("--log", options->log, "what is written to stderr")
      ->check(CLI::IsMember(choices_of("BESTRIDE_LOG")));
  command->add_flag("--dry-run", options->dry_run, "print the environment and the command, run nothing");
  command->callback([options] { run(*options); });
}

}  // namespace bestride::inline cli
