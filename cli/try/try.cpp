// SPDX-License-Identifier: Apache-2.0
#include "cli/try/try.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

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
#include "cli/try/job_output.hpp"
#include "cli/try/paired_times.hpp"
#include "cli/try/timed_run.hpp"

namespace bestride::inline cli {
namespace {

struct TryOptions {
  int rounds = least_conclusive_rounds;
  double seconds = 0;
  std::string profile, keep, json;
  std::vector<std::string> command;
};

enum Kind { plain, bestride_kind };
constexpr const char* kind_names[] = {"plain", "bestride"};

std::string content(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The files of all runs. Removed at the end, unless the user named the folder or something differs.
class RunFolder {
 public:
  explicit RunFolder(const std::string& named) : named_(!named.empty()) {
    if (named_) {
      std::error_code error;
      std::filesystem::create_directories(named, error);
      if (error) fail("can't make the folder '" + named + "': " + error.message() + "; give --keep another one");
      path_ = named;
      return;
    }
    const char* const base = std::getenv("TMPDIR");
    std::string pattern = std::string(base && *base ? base : "/tmp") + "/bestride-try-XXXXXX";
    if (!mkdtemp(pattern.data()))
      fail("can't make a folder '" + pattern + "': " + std::strerror(errno) + "; set TMPDIR, or give --keep a folder");
    path_ = pattern;
  }
  ~RunFolder() {
    std::error_code ignored;
    if (!named_ && !kept_) std::filesystem::remove_all(path_, ignored);
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  std::string file(int round, Kind kind, const char* ending) const {
    return path_ + "/" + std::to_string(round + 1) + "." + kind_names[kind] + ending;
  }
  const std::string& path() const { return path_; }
  const std::string& keep() {
    kept_ = true;
    return path_;
  }

 private:
  std::string path_;
  bool named_, kept_ = false;
};

/// An empty file to which the library adds a byte in a job that it has reached (BESTRIDE_MARK). In the working folder
/// if possible, which hosts mostly share. A process of another host may write it: open() asks the file server for its
/// size.
class Mark {
 public:
  explicit Mark(const RunFolder& folder) {
    for (const std::string& place : {resolved("."), folder.path()}) {
      path_ = place + "/.bestride-try-XXXXXX";
      const int descriptor = mkstemp(path_.data());
      if (descriptor < 0) continue;
      close(descriptor);
      return;
    }
    fail("can't write '" + path_ + "': " + std::strerror(errno) + "; give --keep another folder");
  }
  ~Mark() { unlink(path_.c_str()); }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  const std::string& path() const { return path_; }
  bool left() const { return !content(path_).empty(); }

 private:
  std::string path_;
};

std::string last_lines(const std::string& text, int lines) {
  std::size_t from = text.size();
  for (; from > 0; --from)
    if (text[from - 1] == '\n' && from != text.size() && --lines == 0) break;
  return text.substr(from);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, seconds < 1 ? "%.1f ms" : "%.2f s", seconds < 1 ? seconds * 1e3 : seconds);
  return text;
}

struct Trial {
  std::vector<PairedTimes> rounds;
  std::vector<std::string> outputs[2];
};

/// The lines for which `wanted` holds, each once.
template <class Wanted>
std::vector<std::string> lines_of(const std::string& text, Wanted wanted) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    if (wanted(line) && std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  return lines;
}

bool says_not_preloaded(const std::string& line) {
  return line.find("cannot be preloaded") != std::string::npos && line.find("libbestride") != std::string::npos;
}

/// Ends the command if a run fails.
void check(const TimedRun& run, Kind kind, int round, const Trial& trial, RunFolder& folder, const Mark& mark) {
  if (run.interrupted) finish(run.exit_code);
  const std::string all_errors = content(folder.file(round, kind, ".err"));
  if (kind == bestride_kind && !lines_of(all_errors, says_not_preloaded).empty())
    fail(
        "the dynamic linker of the ranks could not preload the library, so the job would be compared with itself; "
        "'bestride doctor' says why");
  if (kind == bestride_kind && round == 0)
    for (const std::string& line :
         lines_of(all_errors, [](const auto& each) { return each.starts_with("bestride: "); }))
      std::fprintf(stderr, "%s\n", line.c_str());
  if (run.exit_code == 0 && kind == bestride_kind && round == 0 && !mark.left())
    fail(
        "no MPI call of the job reached the library, so the job would be compared with itself: the program makes none, "
        "its MPI library is not supported, or a script or container does not pass LD_PRELOAD on to it; 'bestride "
        "doctor PROGRAM' checks the program, docs/troubleshooting.md says what passes LD_PRELOAD on");
  if (run.exit_code == 0) return;
  const std::string errors = last_lines(all_errors, 10);
  if (!errors.empty()) std::fprintf(stderr, "%s%s", errors.c_str(), errors.back() == '\n' ? "" : "\n");
  const std::string what = std::string("the job failed with exit code ") + std::to_string(run.exit_code);
  if (kind == plain)
    fail(what + " without the library (round " + std::to_string(round + 1) + "); its output is in " + folder.keep());
  fail(what + " with the library (round " + std::to_string(round + 1) + ")" +
           (trial.outputs[plain].empty() ? "" : ", and not without it") + "; its output is in " + folder.keep() +
           "; report it, and run with BESTRIDE_DISABLE=1 meanwhile",
       exit_attention);
}

const char* verdict_of(const PairedComparison& found, std::size_t rounds) {
  if (rounds < static_cast<std::size_t>(least_conclusive_rounds)) return "too_few_rounds";
  if (found.p >= significant) return "no_difference";
  return found.ratio > 1 ? "faster" : "slower";
}

std::string verdict_text(const PairedComparison& found, std::size_t rounds) {
  const std::string verdict = verdict_of(found, rounds);
  char text[160];
  if (verdict == "too_few_rounds")
    std::snprintf(text, sizeof text, "%zu rounds are too few to tell a difference from noise (%d are needed)", rounds,
                  least_conclusive_rounds);
  else if (verdict == "no_difference")
    std::snprintf(text, sizeof text, "no difference beyond the noise (p = %.2f)", found.p);
  else if (verdict == "faster")
    std::snprintf(text, sizeof text, "%.2f times as fast with Bestride, beyond the noise (p = %.2g)", found.ratio,
                  found.p);
  else
    std::snprintf(text, sizeof text, "slower with Bestride: %.2f times the time, beyond the noise (p = %.2g)",
                  1 / found.ratio, found.p);
  return text;
}

constexpr const char* output_names[] = {"same", "same_but_numbers", "varies", "differs"};

std::string output_text(const OutputDifference& found) {
  switch (found.kind) {
    case OutputComparison::same: return "the same in all runs";
    case OutputComparison::same_but_numbers: return "the same but for numbers, which differ between plain runs, too";
    case OutputComparison::varies: return "differs between plain runs: not compared";
    case OutputComparison::differs: break;
  }
  std::string text = "DIFFERS with Bestride in round " + std::to_string(found.run + 1);
  if (!found.missing.empty()) text += "\n  without: " + found.missing;
  if (!found.more.empty()) text += "\n  with:    " + found.more;
  return text;
}

[[noreturn]] void fail_to_write_json(const TryOptions& options, const std::string& why) {
  fail("can't write '" + options.json + "': " + why + "; give --json another path");
}

void write_json(const TryOptions& options, const Trial& trial, const PairedComparison& found,
                const OutputDifference& output) {
  nlohmann::json rounds = nlohmann::json::array();
  for (const auto& [first, second] : trial.rounds) rounds.push_back({{"plain", first}, {"bestride", second}});
  const nlohmann::json all = {{"schema", "bestride-try/1"},
                              {"command", options.command},
                              {"rounds", rounds},
                              {"ratio", found.ratio},
                              {"quartiles", {found.quartiles[0], found.quartiles[1]}},
                              {"p", found.p},
                              {"verdict", verdict_of(found, trial.rounds.size())},
                              {"output", output_names[static_cast<int>(output.kind)]}};
  std::ofstream file(options.json);
  file << all.dump(1) << "\n";
  if (!file.flush()) fail_to_write_json(options, std::strerror(errno));
}

Environment environment_with(const TryOptions& options, const Installation& installation, const Mark& mark) {
  Environment set;
  set.emplace_back("LD_PRELOAD", preload_with(installation.preload));
  set.emplace_back("BESTRIDE_MARK", mark.path());
  if (!options.profile.empty()) set.emplace_back("BESTRIDE_PROFILE", named_profile(options.profile));
  return set;
}

void run_rounds(const TryOptions& options, const std::string& launcher, const std::vector<std::string> (&commands)[2],
                const Environment (&environments)[2], RunFolder& folder, const Mark& mark, Trial* trial) {
  const auto begin = std::chrono::steady_clock::now();
  double longest = 0;
  std::printf("round       plain    Bestride   ratio\n");
  for (int round = 0; round < options.rounds; ++round) {
    const double used = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (options.seconds > 0 && round > 0 && used + longest > options.seconds) break;
    double seconds[2] = {};
    for (const Kind kind : {round % 2 ? bestride_kind : plain, round % 2 ? plain : bestride_kind}) {
      const std::string output = folder.file(round, kind, ".out");
      const TimedRun run =
          run_timed(launcher, commands[kind], environments[kind], output, folder.file(round, kind, ".err"));
      check(run, kind, round, *trial, folder, mark);
      seconds[kind] = run.seconds;
      trial->outputs[kind].push_back(content(output));
    }
    trial->rounds.emplace_back(seconds[plain], seconds[bestride_kind]);
    longest = std::max(longest, seconds[plain] + seconds[bestride_kind]);
    std::printf("%5d%12s%12s%8.2f\n", round + 1, seconds_text(seconds[plain]).c_str(),
                seconds_text(seconds[bestride_kind]).c_str(), seconds[plain] / seconds[bestride_kind]);
    std::fflush(stdout);
  }
}

void try_job(const TryOptions& options) {
  if (options.command.empty()) fail("no command to try; for example: bestride try mpiexec -n 4 ./program");
  if (Settings::get().flag("BESTRIDE_DISABLE"))
    fail("BESTRIDE_DISABLE=1 leaves every call to the MPI library, so the job would be compared with itself; unset it");
  const Installation installation = Installation::find();
  if (const std::string why = installation.why_no_preload(); !why.empty()) fail(why);
  const std::string launcher = find_program(options.command[0]);
  if (launcher.empty()) {
    bool exists = false;
    const std::string why = why_no_program(options.command[0], &exists);
    fail("can't run '" + options.command[0] + "': " + why, exists ? exit_no_program : exit_not_found);
  }
  if (!options.json.empty())
    if (const std::string why = why_not_opened(options.json); !why.empty()) fail_to_write_json(options, why);
  RunFolder folder(options.keep);
  const Mark mark(folder);
  Environment environments[2] = {{{"LD_PRELOAD", preload_without_bestride()}},
                                 environment_with(options, installation, mark)};
  std::vector<std::string> commands[2] = {options.command, options.command};
  for (const std::string& note : prepare_launcher(commands[bestride_kind], environments[bestride_kind]))
    std::fprintf(stderr, "bestride: %s\n", note.c_str());

  Trial trial;
  run_rounds(options, launcher, commands, environments, folder, mark, &trial);
  const PairedComparison found = compare(trial.rounds);
  const OutputDifference output = compare_outputs(trial.outputs[plain], trial.outputs[bestride_kind]);
  std::printf("\nratio   %.2f, quartiles %.2f to %.2f: %s\noutput  %s\n", found.ratio, found.quartiles[0],
              found.quartiles[1], verdict_text(found, trial.rounds.size()).c_str(), output_text(output).c_str());
  if (!options.json.empty()) write_json(options, trial, found, output);
  if (output.kind == OutputComparison::differs) {
    std::printf("files   %s\n", folder.keep().c_str());
    finish(exit_attention);
  }
}

}  // namespace

void add_try(CLI::App& app, std::vector<std::string>& words) {
  const auto options = std::make_shared<TryOptions>();
  options->command = take_job(words, "try", {"--rounds", "--seconds", "--profile", "--keep", "--json"});
  CLI::App* const command = app.add_subcommand("try",
                                               "run a job without and with the library in turns, and compare time and "
                                               "output: bestride try mpiexec -n 4 ./program");
  command
      ->add_option("--rounds", options->rounds, "runs of each kind; fewer than 6 cannot tell a difference from noise")
      ->check(whole_number(1, max_rounds))
      ->capture_default_str();
  command->add_option("--seconds", options->seconds, "begin no round that would end later than this")
      ->check(number(least_seconds, most_seconds));
  command->add_option("--profile", options->profile, "machine profile to use")->type_name("FILE");
  command->add_option("--keep", options->keep, "folder for the output of each run; kept")->type_name("FOLDER");
  command->add_option("--json", options->json, "write the times and the verdict")->type_name("FILE");
  command->callback([options] { try_job(*options); });
}

}  // namespace bestride::inline cli
