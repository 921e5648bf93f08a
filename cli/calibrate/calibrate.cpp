// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/calibrate.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <sstream>

#include "base/replace_file.hpp"
#include "base/variables.hpp"
#include "cli/calibrate/collectives.hpp"
#include "cli/calibrate/measure.hpp"
#include "cli/calibrate/one_node.hpp"
#include "cli/calibrate/progress.hpp"
#include "cli/calibrate/rails.hpp"
#include "cli/calibrate/summary.hpp"
#include "cli/common/command.hpp"
#include "cli/common/installation.hpp"
#include "cli/common/number.hpp"
#include "cli/common/shell.hpp"
#include "perfmodel/calibrate/messages/state.hpp"
#include "perfmodel/choose/chooser.hpp"
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline cli {
namespace {

namespace fs = std::filesystem;

/// Without blanks around them and without empty ones.
std::vector<std::string> words_of(const std::string& text, char between) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, between);) {
    const std::size_t first = word.find_first_not_of(' ');
    if (first != std::string::npos) words.push_back(word.substr(first, word.find_last_not_of(' ') - first + 1));
  }
  return words;
}

/// In the build tree next to the command; installed under libexec.
std::string measuring_program() {
  const std::string name = "bestride-measure-mpich";
  const fs::path here = fs::path(resolved("/proc/self/exe")).parent_path();
  for (const fs::path& path : {here / name, here.parent_path() / "libexec/bestride" / name})
    if (::access(path.c_str(), X_OK) == 0) return path;
  fail("can't find " + name +
       " beside the command or in its libexec folder; it is built where an MPICH compiler wrapper was found");
}

std::vector<std::string> launcher(const CalibrateOptions& options) {
  if (!options.mpiexec.empty()) {
    const std::vector<std::string> words = words_of(options.mpiexec, ' ');
    if (words.empty() || find_program(words[0]).empty())
      fail("can't find the launcher '" + options.mpiexec + "'; give MPICH's with --mpiexec");
    return words;
  }
  for (const char* name : {"mpiexec.mpich", "mpiexec.hydra", "mpiexec"})
    if (!find_program(name).empty()) return {name};
  fail("no mpiexec in PATH; give MPICH's with --mpiexec");
}

/// Where the library will read it, if the user names no other file. Checked before anything is measured.
std::string output_path(const CalibrateOptions& options) {
  const std::string path = options.output.empty() ? profile_path_to_write() : options.output;
  if (path.empty()) fail("no home folder to write the profile to; give a file with --output");
  const bool named = options.output.empty() && !Settings::get().text("BESTRIDE_PROFILE").empty();
  const std::string file = (named ? "BESTRIDE_PROFILE='" : "'") + path + "'";
  const std::string remedy = "; choose another file with --output";
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code problem;
  fs::create_directories(folder, problem);
  if (problem) fail("can't create the folder of " + file + ": " + problem.message() + remedy);
  if (fs::is_directory(path)) fail(file + " is a folder; give a file with --output");
  if (const std::string why = why_not_writable(path); !why.empty()) fail("can't write " + file + ": " + why + remedy);
  return path;
}

/// The file, why it is that one, and what jobs need in order to read it.
std::string written_text(const CalibrateOptions& options, const std::string& output) {
  const std::string& named = Settings::get().text("BESTRIDE_PROFILE");
  if (options.output.empty()) return "written to " + output + (named.empty() ? "" : ", which BESTRIDE_PROFILE names");
  std::error_code ignored;
  const std::string read = find_profile_path();
  if (!read.empty() && fs::equivalent(output, read, ignored)) return "written to " + output;
  return "written to " + output + "; jobs read it with BESTRIDE_PROFILE=" + fs::absolute(output).string() + " (now " +
         (read.empty() ? "none" : read) + ")";
}

MachineFingerprint fingerprint_of(const std::string& configuration) {
  std::vector<std::string> fields;
  std::size_t from = 0;
  for (std::size_t at; (at = configuration.find(" | ", from)) != std::string::npos; from = at + 3)
    fields.push_back(configuration.substr(from, at - from));
  fields.push_back(configuration.substr(from));
  fields.resize(4);
  return {fields[0], fields[1], fields[2], fields[3]};
}

/// A profile that can't be read is replaced, but not if something else was to stay in it.
void check_older(const CalibrateOptions& options, const std::string& output) {
  std::error_code error;
  if (!fs::exists(output, error)) return;
  const auto older = MachineProfile::load(output);
  if (older) return;
  const std::string cause = older.error().text.substr(0, older.error().text.find("; "));
  if (!options.only.empty())
    fail(cause + ", so nothing but '" + options.only +
         "' would be left in it; remove it or leave --only out to measure "
         "everything again, or choose another file with --output");
  std::fprintf(stderr, "bestride: %s; it is replaced\n", cause.c_str());
}

/// Values missing in `newer` are taken from `older`.
void keep_older(Measurements* newer, const Measurements& older) {
  const auto keep = [](auto& points, const auto& from) {
    for (std::size_t i = 0; i < points.size(); ++i)
      if (std::isnan(points[i])) points[i] = from[i];
  };
  for (std::size_t form = 0; form < newer->contiguous.size(); ++form)
    for (std::size_t call_class = 0; call_class < newer->contiguous[form].size(); ++call_class)
      keep(newer->contiguous[form][call_class].log_seconds, older.contiguous[form][call_class].log_seconds);
  for (std::size_t grid = 0; grid < newer->grids.size(); ++grid)
    for (std::size_t row = 0; row < newer->grids[grid].log_seconds.size(); ++row)
      keep(newer->grids[grid].log_seconds[row], older.grids[grid].log_seconds[row]);
}

/// True for the same machine, whatever its GPU is.
bool fits(MachineFingerprint older, const MachineFingerprint& here) {
  older.gpu.clear();
  return why_stale(older, here).empty();
}

/// Curves of the GPU that are missing in `newer` are taken from the older profile if it is of this GPU; all of them if
/// no GPU was measured now.
void keep_older_device(DeviceMeasurements* newer, std::string* gpu, const MachineProfile& older) {
  const DeviceMeasurements& from = older.device().measured();
  if (!newer->any()) {
    *newer = from;
    *gpu = older.fingerprint.gpu;
    return;
  }
  const auto keep = [](auto& points, const auto& values) {
    for (std::size_t i = 0; i < points.size(); ++i)
      if (std::isnan(points[i])) points[i] = values[i];
  };
  keep(newer->log_floors, from.log_floors);
  for (std::size_t i = 0; i < newer->dma.size(); ++i) keep(newer->dma[i].log_seconds, from.dma[i].log_seconds);
  for (std::size_t i = 0; i < newer->contiguous.size(); ++i)
    keep(newer->contiguous[i].log_seconds, from.contiguous[i].log_seconds);
  for (std::size_t i = 0; i < newer->grids.size(); ++i)
    for (std::size_t row = 0; row < newer->grids[i].log_seconds.size(); ++row)
      keep(newer->grids[i].log_seconds[row], from.grids[i].log_seconds[row]);
}

void check_kinds(const std::string& only) {
  CallKind kind;
  if (!only.empty() && words_of(only, ',').empty()) fail("--only '" + only + "' names nothing to measure");
  for (const std::string& word : words_of(only, ','))
    if (word != "gpu" && word != "collectives" && !parse(word, &kind))
      fail("unknown call kind '" + word +
           "' in --only; known are pack, unpack, send, receive, isend, irecv, gpu, collectives");
}

void check_rails(const std::string& rails, bool collectives) {
  if (rails.empty() || rails == "off" || rails == "auto") return;
  if (!collectives) fail("--nics is about collectives, which --only leaves out; add collectives to it");
  if (const auto list = rails_of_list(rails); !list) fail("--nics '" + rails + "': " + list.error().text);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ",") + word;
  return text;
}

/// With what a process needs to know before it decodes the profile.
void save(MachineProfile& profile, const std::string& output) {
  profile.respell_contiguous_from =
      Chooser(profile).respell_contiguous_from({Distance::cache, Distance::domain, Distance::socket});
  if (const auto saved = profile.save(output); !saved) fail(saved.error().text);
}

/// Everything in the file if it is of this machine, else nothing; `fingerprint` gets its GPU.
std::optional<MachineProfile> older_of_this_machine(const std::string& output, MachineFingerprint* fingerprint) {
  if (auto older = MachineProfile::load(output); older && fits(older->fingerprint, *fingerprint)) {
    fingerprint->gpu = older->fingerprint.gpu;
    return std::move(*older);
  }
  return std::nullopt;
}

/// Adds the collective measurements to the file if it is of this machine; a profile may have only these. If the rails
/// changed, measurements over the previous NICs are dropped.
void save_collectives(const std::string& output, const CollectiveRun& done, const Rails& rails) {
  MachineFingerprint fingerprint = fingerprint_of(done.run.configuration);
  Measurements curves;
  DeviceMeasurements device;
  CollectiveMeasurements collectives;
  OneNodeMeasurements one_node;
  if (const auto older = older_of_this_machine(output, &fingerprint)) {
    curves = older->measured();
    device = older->device().measured();
    one_node = older->one_node;
    if (older->rails == rails) collectives = older->collectives();
  }
  collectives.merge(done.values);
  MachineProfile profile = MachineProfile::from(curves, fingerprint, device, std::move(collectives));
  profile.one_node = one_node;
  profile.rails = rails;
  save(profile, output);
}

/// Measures collectives within this host and adds them to the file in the same way. Prints what was measured or why
/// not. False: nothing was.
bool calibrate_one_node(const CalibrateOptions& options, const std::string& output, double budget) {
  const OneNodeRun done = measure_one_node(options, launcher(options), measuring_program(), budget);
  print_one_node(done);
  if (!done.values.any()) return false;
  MachineFingerprint fingerprint = fingerprint_of(done.run.configuration);
  std::optional<MachineProfile> profile = older_of_this_machine(output, &fingerprint);
  if (!profile) profile.emplace(MachineProfile::from({}, fingerprint));
  profile->one_node = done.values;
  save(*profile, output);
  return true;
}

/// Returns true if there were several hosts. Rails are measured first, because all later measurements use them. Writes
/// the profile, first with the links, because the preloaded library uses their rate.
bool calibrate_collectives(const CalibrateOptions& options, const std::string& output, double budget) {
  const std::vector<std::string> start = launcher(options);
  const std::string program = measuring_program();
  const Result<MachineProfile> older = MachineProfile::load(output);
  Rails rails = older ? older->rails : Rails{};
  RailsRun tried;
  if (options.rails != "off" && !Installation::find().preload.empty()) {
    tried = measure_rails(options, start, program);
    if (!tried.two_hosts) return false;
    if (tried.decided) rails = tried.rails;
  }
  for (const CollectivePart part : {CollectivePart::links, CollectivePart::points}) {
    CollectiveRun done = measure_collectives(options, start, program, output, rails, part, budget);
    if (!done.run.two_hosts) return false;
    if (!tried.decided && !rails.empty() && !fits(older->fingerprint, fingerprint_of(done.run.configuration))) {
      rails.clear();  // of another machine
      done = measure_collectives(options, start, program, output, rails, part, budget);
    }
    save_collectives(output, done, rails);
    if (part == CollectivePart::links) continue;
    print_collectives(done);
    if (!tried.text.empty()) std::printf("%s\n", tried.text.c_str());
    if (done.run.left_out == 0) ::unlink(collective_state_path(output).c_str());
  }
  return true;
}

/// Measures contiguous messages between ranks bound at each near distance that this host has, a tenth of the time for
/// each. What can't be measured is left out, with a message. `common`: the launcher, the program and its options. The
/// result has the sums of points and seconds.
MeasureRun measure_near(const CalibrateOptions& options, const std::vector<std::string>& common, double budget) {
  MeasureRun all;
  for (const Distance distance : near_distances) {
    std::vector<std::string> command = common;
    command.insert(command.end(),
                   {"--no-gpu", "--near", std::string(name(distance)), "--budget", std::to_string(budget / 10)});
    if (options.restart && all.measured == 0) command.emplace_back("--restart");
    Progress progress("calibrating near ranks");
    const MeasureRun run =
        follow_measurement(command, {options.patience},
                           [&](int done, int total, const std::string& at) { progress.show(done, total, at); });
    progress.clear();
    end_if_incomplete(run, "measuring", command[0]);
    all.seconds += run.seconds;
    all.measured += run.measured, all.known += run.known, all.left_out += run.left_out;
    for (const auto& [event, text] : run.more)
      if (event == "no-pair" && !text.empty()) {
        std::printf("ranks near each other are left out: %s\n", text.c_str());
        return all;
      }
    if (run.two_hosts) break;
  }
  return all;
}

void say_collectives_left_out() {
  std::printf(
      "collectives between hosts are left out: all ranks were on one host; name several with --mpiexec 'mpiexec -hosts "
      "a,b'\n");
}

}  // namespace

int calibrate_command(const CalibrateOptions& options) {
  check_kinds(options.only);
  std::vector<std::string> only = words_of(options.only, ',');
  const bool collectives = only.empty() || std::erase(only, "collectives") > 0;
  if (options.no_gpu && std::find(only.begin(), only.end(), "gpu") != only.end())
    fail("--only gpu and --no-gpu contradict each other; give one of them");
  check_rails(options.rails, collectives);
  const std::string output = output_path(options), state_path = output + ".state";
  const int budget = options.budget > 0 ? options.budget : options.quick ? 30 : options.thorough ? 300 : 85;
  check_older(options, output);
  if (only.empty() && !options.only.empty()) {
    if (!calibrate_collectives(options, output, budget)) {
      say_collectives_left_out();
      if (!calibrate_one_node(options, output, budget)) return exit_attention;
    }
    std::printf("\n%s\n", written_text(options, output).c_str());
    return exit_good;
  }
  std::vector<std::string> command = launcher(options);
  command.insert(command.end(), {"-n", "2", measuring_program(), "messages", "--state", state_path});
  if (options.quick) command.push_back("--quick");
  if (options.thorough) command.push_back("--thorough");
  const auto is_message_kind = [](const std::string& word) {
    CallKind kind;
    return parse(word, &kind) && is_message(kind);
  };
  if (!only.empty()) command.insert(command.end(), {"--only", joined(only)});
  const bool messages = only.empty() || std::any_of(only.begin(), only.end(), is_message_kind);
  const MeasureRun near = messages ? measure_near(options, command, budget) : MeasureRun{};
  command.insert(command.end(), {"--budget", std::to_string(std::max(0.0, budget - near.seconds))});
  if (options.restart && near.measured == 0) command.push_back("--restart");
  if (options.gpu) command.push_back("--gpu");
  if (options.no_gpu) command.push_back("--no-gpu");

  Progress progress("calibrating");
  MeasureRun run = follow_measurement(
      command, {options.patience}, [&](int done, int total, const std::string& at) { progress.show(done, total, at); });
  run.complete ? progress.finish() : progress.clear();
  end_if_incomplete(run, "measuring", command[0]);
  run.seconds += near.seconds;
  run.measured += near.measured, run.known += near.known, run.left_out += near.left_out;
  if (run.measured + run.known == 0)
    fail("nothing could be measured undisturbed in " + std::to_string(budget) +
             " s: other programs keep the processors busy; try when it is idle",
         exit_attention);
  MessagesState state = read_messages_state(state_path, run.configuration);
  if (state.done.empty())
    fail("the state file '" + state_path + "' is gone or damaged; run again with --restart", exit_attention);
  MachineFingerprint fingerprint = fingerprint_of(run.configuration);
  if (state.device.any() && (run.gpu.empty() || run.gpu == state.gpu))
    fingerprint.gpu = state.gpu;
  else
    state.device = {};
  CollectiveMeasurements known;
  OneNodeMeasurements one_node;
  Rails rails;
  if (const auto older = MachineProfile::load(output); older && fits(older->fingerprint, fingerprint)) {
    known = older->collectives();
    one_node = older->one_node;
    rails = older->rails;
    if (!options.only.empty()) keep_older(&state.values, older->measured());
    if (run.gpu.empty() || fingerprint.gpu.empty() || older->fingerprint.gpu == fingerprint.gpu)
      keep_older_device(&state.device, &fingerprint.gpu, *older);
  }
  MachineProfile profile = MachineProfile::from(state.values, fingerprint, state.device, std::move(known));
  profile.one_node = one_node;
  profile.rails = std::move(rails);
  save(profile, output);
  // Points skipped because of the time limit are left for the next run.
  if (run.left_out == 0) ::unlink(state_path.c_str());
  print_summary(run, profile);
  // Two ranks on one host imply that all are on one host. This part gets an additional third of the time, on one host
  // 15 s at most.
  if (collectives && (!run.two_hosts || !calibrate_collectives(options, output, budget / 3.0))) {
    say_collectives_left_out();
    calibrate_one_node(options, output, budget / 3.0);
  }
  std::printf("\n%s\n", written_text(options, output).c_str());
  return exit_good;
}

void add_calibrate(CLI::App& app) {
  CLI::App* const command = app.add_subcommand("calibrate", "measure this machine and write its profile");
  static CalibrateOptions options;
  static bool resume = false;
  auto* const quick = command->add_flag("--quick", options.quick, "coarse curves, in half a minute");
  command->add_flag("--thorough", options.thorough, "the finest curves, in five minutes")->excludes(quick);
  command->add_option(
      "--only", options.only,
      "what to measure, of pack,unpack,send,receive,isend,irecv,gpu,collectives; the rest stays as it is in the file");
  auto* const gpu = command->add_flag("--gpu", options.gpu,
                                      "measure the GPU, too, and fail if there is none (default: if there is one)");
  command->add_flag("--no-gpu", options.no_gpu, "do not measure the GPU; keep the file's GPU values")->excludes(gpu);
  command->add_option("-o,--output", options.output,
                      "file to write (default: the one that BESTRIDE_PROFILE names, else "
                      "~/.config/bestride/profile.json)");
  command->add_option("--mpiexec", options.mpiexec,
                      "launcher with its arguments, e.g. 'mpiexec -hosts a,b' to measure between two hosts");
  command
      ->add_option("--budget", options.budget,
                   "seconds to measure at most (default: 85; with --quick 30, with --thorough 300)")
      ->check(whole_number(1, most_seconds));
  command
      ->add_option("--patience", options.patience,
                   "how long the launcher may take to start the measuring program; default 60")
      ->type_name("SECONDS")
      ->check(number(1, most_seconds));
  command
      ->add_option(
          "--ranks", options.ranks,
          "ranks that measure collectives (default: 4 on several hosts; on one host as many as processors, up to 16)")
      ->check(whole_number(2, 1 << 20));
  command->add_option("--nics", options.rails,
                      "NICs to try, one per local rank, if --mpiexec names several hosts, such as eth0,eth1 (default: "
                      "equal ones); off: keep the file's values");
  auto* const go_on = command->add_flag("--resume", resume, "continue an interrupted run (the default)");
  command->add_flag("--restart", options.restart, "discard intermediate results and measure everything again")
      ->excludes(go_on);
  command->callback([] {
    if (const int code = calibrate_command(options); code != exit_good) finish(code);
  });
}

}  // namespace bestride::inline cli
