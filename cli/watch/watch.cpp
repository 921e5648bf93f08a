// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watch.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "base/replace_file.hpp"
#include "cli/common/command.hpp"
#include "cli/common/shell.hpp"
#include "cli/watch/finding_text.hpp"
#include "cli/watch/launcher_process.hpp"
#include "cli/watch/verdict_file.hpp"
#include "cli/watch/watched_job.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Time between two looks at the records, in milliseconds.
constexpr int relaxed_period = 1000, suspecting_period = 250;
constexpr std::size_t most_verdicts = 8;                               ///< that are printed of a job
constexpr double patience_after_abort = 10, patience_for_records = 5;  ///< seconds

class Watch {
 public:
  Watch(const std::string& path, const std::vector<std::string>& command, const WatchOptions& options)
      : options_(options),
        outputs_(options.outputs, [this](const Finding& finding) { return is_excused(finding); }),
        folder_(records_folder()),
        launcher_(path, command) {}

  int run() {
    while (!launcher_.ended()) {
      wait();
      launcher_.handle_signals();
      look();
      end_aborted_job();
    }
    look();
    for (auto& [name, job] : jobs_) finish(*job);
    // Some launchers end with 0 after SIGTERM.
    return aborted_at_ > 0 && launcher_.exit_code() == exit_good ? 128 + SIGTERM : launcher_.exit_code();
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  /// Until something happens, or it is time to look again.
  void wait() const {
    std::vector<pollfd> entries{{launcher_.signals(), POLLIN, 0}};
    bool suspects = false;
    for (const auto& [name, job] : jobs_) {
      for (const int descriptor : job->process_descriptors()) entries.push_back({descriptor, POLLIN, 0});
      suspects = suspects || job->suspects();
    }
    poll(entries.data(), entries.size(), suspects ? suspecting_period : relaxed_period);
  }

  void look() {
    for (auto& [name, job] : jobs_) job->note_ends(seconds());
    for (const std::string& name : job_names(folder_))
      if (!jobs_.count(name) && !others_.count(name)) {
        const JobSnapshot job = read_job(folder_, name, {0});
        if (job.ranks.empty()) continue;  // its first record is being written
        if (job.ranks[0].watcher == watcher_)
          jobs_.emplace(name, std::make_unique<WatchedJob>(folder_, name, realtime_));
        else
          others_.insert(name);
      }
    for (auto& [name, job] : jobs_)
      if (!job->ended() || job->view().job.ranks.empty()) {
        report(*job, job->observe(seconds()));
        note_other_ranks(*job);
        outputs_.refresh(*job, seconds());
      }
  }

  /// Says once that some ranks can't be watched from here.
  void note_other_ranks(const WatchedJob& job) {
    std::size_t size = 0;
    const std::size_t seen = job.processes();
    for (const RankSnapshot& rank : job.view().job.ranks)
      size = std::max(size, static_cast<std::size_t>(rank.world_size));
    if (size <= seen || seconds() < patience_for_records || !incomplete_.insert(job.name()).second) return;
    say("bestride: " + std::to_string(size - seen) + " of " + std::to_string(size) +
        " ranks are not watched: they are on other hosts or have no preload library\n");
  }

  /// A job that was asked to end is no fault.
  bool is_excused(const Finding& finding) const {
    return finding.fault == Fault::crash && (launcher_.interrupted() || aborted_at_ > 0);
  }

  void report(WatchedJob& job, const WatchedJob::Changes& changes) {
    for (const std::size_t i : changes.ended) {
      const Reported& reported = job.reported()[i];
      if (job.ended() || is_excused(reported.finding)) continue;
      say("bestride: " + std::string(name(reported.finding.fault)) + " ended after " +
          seconds_text(reported.ended - reported.finding.since) + ": the job goes on\n");
    }
    bool new_finding = false;
    for (const std::size_t i : changes.begun) {
      const Finding& finding = job.reported()[i].finding;
      if (is_excused(finding)) continue;
      new_finding = true;
      if (wants_stacks(finding)) stacks_[job.name()] = take_job_stacks(job.view(), false);
      if (++printed_[job.name()] <= most_verdicts)
        say(finding_text(finding, job.view(), wants_stacks(finding) ? stacks_of(job) : nullptr,
                         seconds() - finding.since, colour_wanted(STDERR_FILENO)));
      act_on(finding);
    }
    if (new_finding || !changes.ended.empty()) write(job, -1, new_finding);
  }

  const JobStacks* stacks_of(const WatchedJob& job) const {
    const auto taken = stacks_.find(job.name());
    return taken != stacks_.end() ? &taken->second : nullptr;
  }

  static void say(const std::string& text) { std::fputs(text.c_str(), stderr); }

  std::string path_of(const WatchedJob& job) const {
    return (options_.folder.empty() ? "" : options_.folder + "/") + "bestride-" + job.name() + ".verdict.json";
  }

  void write(const WatchedJob& job, int exit_code, bool announce) {
    const std::string text = verdict_json(job, seconds(), exit_code, stacks_of(job));
    if (const auto written = replace_file(path_of(job), text); !written)
      say("bestride: " + written.error().text + "; name another folder with --verdict-folder\n");
    else if (announce)
      say("  file: " + path_of(job) + "\n");
    if (announce && options_.on_fault == OnFault::command)
      if (const auto begun = run_with_input(options_.command, text); !begun)
        say("bestride: can't run the command of --on-fault: " + begun.error().text + "\n");
  }

  /// Only what cannot end by itself.
  static bool is_certain(const Finding& finding) {
    return finding.confidence >= 0.9 && finding.fault != Fault::stopped && finding.fault != Fault::computation_hang;
  }

  void act_on(const Finding& finding) {
    if (options_.on_fault != OnFault::abort || !is_certain(finding) || aborted_at_ > 0) return;
    say("bestride: the job is ended because it can't go on (--on-fault=abort)\n");
    aborted_at_ = seconds();
    launcher_.send(SIGTERM);
  }

  /// A launcher that does not end its ranks within some seconds is ended together with them.
  void end_aborted_job() {
    if (aborted_at_ == 0 || seconds() - aborted_at_ < patience_after_abort) return;
    for (const auto& [name, job] : jobs_)
      for (const RankSnapshot& rank : job->view().job.ranks)
        if (rank.visible && process_status(rank.pid).start_time == rank.process_start) kill(rank.pid, SIGKILL);
    launcher_.send(SIGKILL);
  }

  /// With BESTRIDE_LOG=info.
  void say_cost(const WatchedJob& job) const {
    const char* const log = std::getenv("BESTRIDE_LOG");
    if (!log || std::strcmp(log, "info") != 0) return;
    const WatchCost cost = watch_cost(job, seconds());
    char text[200];
    std::snprintf(
        text, sizeof text,
        "bestride: watched %zu ranks for %.1f s: this process took %.2f %% of a core, recording at most %.2f %% "
        "of a rank's time\n",
        job.processes(), seconds(), 100 * cost.watcher, 100 * cost.recording);
    say(text);
  }

  void finish(WatchedJob& job) {
    say_cost(job);
    job.note_ends(seconds());
    // Twice, because a finding is confirmed by the next observation.
    for (int i = 0; i < 2; ++i) report(job, job.observe(seconds()));
    if (std::any_of(job.reported().begin(), job.reported().end(),
                    [this](const Reported& reported) { return !is_excused(reported.finding); }))
      write(job, launcher_.exit_code(), false);
    outputs_.finish(job, launcher_.exit_code(), stacks_of(job));
    job.remove_records();
  }

  const WatchOptions& options_;
  JobOutputs outputs_;
  const std::string folder_;
  const Clock::time_point started_ = Clock::now();
  const double realtime_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string watcher_ = watcher_name();
  std::set<std::string> others_;  ///< names of jobs that this process does not watch
  std::map<std::string, std::unique_ptr<WatchedJob>> jobs_;
  std::map<std::string, std::size_t> printed_;
  std::map<std::string, JobStacks> stacks_;  ///< by job, when its last finding was made
  std::set<std::string> incomplete_;         ///< jobs with ranks that can't be watched
  double aborted_at_ = 0;                    ///< 0: the job was not ended
  LauncherProcess launcher_;
};

}  // namespace

// What tells the jobs of this process from all others: host, pid and start time.
std::string watcher_name() {
  char host[64] = "";
  gethostname(host, sizeof host - 1);
  return std::string(host) + ":" + std::to_string(getpid()) + ":" + std::to_string(own_start_time());
}

int watch(const std::string& path, const std::vector<std::string>& command, const WatchOptions& options) {
  return Watch(path, command, options).run();
}

}  // namespace bestride::inline cli
