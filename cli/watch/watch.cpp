// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watch.hpp"

#include <poll.h>
#include <sys/resource.h>
#include <time.h>
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
#include <utility>

#include "base/replace_file.hpp"
#include "cli/common/command.hpp"
#include "cli/common/launcher.hpp"
#include "cli/common/shell.hpp"
#include "cli/watch/agents.hpp"
#include "cli/watch/finding_text.hpp"
#include "cli/watch/launcher_process.hpp"
#include "cli/watch/verdict_file.hpp"
#include "cli/watch/watched_job.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/watcher.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

using Clock = std::chrono::steady_clock;

/// Time between two looks, in seconds: longer if a look takes more than these shares of a core.
constexpr double relaxed_period = 1, shortest_period = 0.25, longest_period = 10;
constexpr double most_share = 0.01, most_share_suspecting = 0.25, most_share_confirming = 1;
/// In the first seconds, as long as not all ranks are known: how a rank ended is known only if it was known before.
constexpr double starting = 5, starting_period = 0.05;
constexpr double answer_patience = 0.5, last_answer_patience = 2, stacks_patience = 10;  ///< seconds, for agents
constexpr double late_agents_patience = 1;  ///< seconds, if the job has failed
constexpr double patience_for_ranks = 2;    ///< seconds, that end after their launcher
constexpr unsigned looks_for_outputs = 10;  ///< with metrics, one of so many looks gets everything
constexpr double working_factor = 3;        ///< a rank that works is mentioned again if it does so for so much longer
constexpr std::size_t most_verdicts = 8;    ///< that are printed of a job
constexpr double patience_after_abort = 10, patience_for_records = 10;  ///< seconds

/// Until the agents have formed a tree, each of them has a connection here.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

double own_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Watch {
 public:
  Watch(const std::string& path, const std::vector<std::string>& command, const WatchOptions& options, Agents& agents)
      : options_(options),
        outputs_(options.outputs),
        folder_(records_folder()),
        agents_(agents),
        starts_ranks_(launcher_kind(path) != LauncherKind::unknown),
        launcher_(path, command) {}

  int run() {
    raise_descriptor_limit();  // not of the launcher, which runs already
    while (!launcher_.ended()) {
      const bool changed = wait();
      launcher_.handle_signals();
      if (changed || launcher_.ended() || seconds() >= next_look_) look(false);
      end_aborted_job();
    }
    look(true);
    const bool unseen = starts_ranks_ && jobs_.empty();
    if (launcher_.exit_code() != exit_good || unseen) look_for_late_agents();
    note_unseen_job();
    say_abandoned();
    for (auto& [key, job] : jobs_) finish(key, *job);
    // Some launchers end with 0 after SIGTERM.
    return aborted_at_ > 0 && launcher_.exit_code() == exit_good ? 128 + SIGTERM : launcher_.exit_code();
  }

 private:
  /// By the launcher's name for the job, or by the name of its folder if that is not known.
  using Jobs = std::map<std::string, std::unique_ptr<WatchedJob>>;

  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  /// Waits until it is time to look, or for an event. True if a rank has ended or an agent is new.
  bool wait() {
    if (agents_.receive(seconds())) return true;
    std::vector<pollfd> entries{{launcher_.signals(), POLLIN, 0}};
    for (const int descriptor : agents_.descriptors()) entries.push_back({descriptor, POLLIN, 0});
    for (const auto& [key, job] : jobs_)
      if (job->local()) entries.push_back({job->local()->ends_descriptor(), POLLIN, 0});
    // An agent's news may make the next look urgent.
    if (suspects()) next_look_ = std::min(next_look_, last_look_ + suspecting_period());
    const double left = std::max(next_look_ - seconds(), 0.0);
    poll(entries.data(), entries.size(), static_cast<int>(1000 * left) + 1);
    bool changed = agents_.receive(seconds());
    for (const auto& [key, job] : jobs_)
      if (job->local()) changed = job->local()->note_ends(seconds()) || changed;
    return changed;
  }

  /// A finding is confirmed by the next observation, which should be soon.
  double suspecting_period() const {
    const bool confirms =
        std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.second->awaits_confirmation(); });
    return std::max(shortest_period, look_cost_ / (confirms ? most_share_confirming : most_share_suspecting));
  }
  bool suspects() const {
    return agents_.suspects() ||
           std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) { return job.second->suspects(); });
  }

  /// `last`: the launcher has ended.
  void look(bool last) {
    last_look_ = seconds();
    const double cpu_before = own_cpu_seconds();
    find_jobs();
    // Once while there is no progress: with all finished calls.
    const bool suspected_now = suspects() && !suspected_;
    suspected_ = suspects();
    const bool has_outputs = options_.outputs.report || !options_.outputs.metrics.empty();
    const bool for_outputs = has_outputs && looks_++ % looks_for_outputs == 0;
    const bool all = last || suspected_now || for_outputs;
    ask_agents(all, last ? last_answer_patience : answer_patience);
    for (auto& [key, job] : jobs_) {
      if (closed_.count(key) || (job->ended() && !job->ranks().empty())) continue;
      if (job->local()) job->local()->note_ends(seconds());
      observe(key, *job, JobPhase::running);
      note_working_ranks(*job);
      note_other_ranks(*job);
      outputs_.refresh(*job, seconds());
    }
    // Agents whose messages have arrived during a long look are not silent.
    urgent_ = agents_.receive(seconds()) || urgent_;
    for (const std::string& line : agents_.news(seconds())) say("bestride: " + line + "\n");
    if (!last) close_ended_jobs();
    if (!all || look_cost_ == 0) look_cost_ = own_cpu_seconds() - cpu_before;
    const bool starts = seconds() < starting && (!all_ranks_known() || any_rank_starts());
    const double period = starts       ? std::max(starting_period, look_cost_ / most_share_suspecting)
                          : suspects() ? suspecting_period()
                                       : std::max(relaxed_period, look_cost_ / most_share);
    next_look_ = std::exchange(urgent_, false) ? seconds() : last_look_ + std::min(period, longest_period);
  }

  /// In a short job, an agent on another host may not have connected yet.
  void look_for_late_agents() {
    for (const double until = seconds() + late_agents_patience; seconds() < until && !all_ranks_known();) {
      wait_for_agents(0.05, [] { return false; });
      look(true);
    }
  }
  bool all_ranks_known() const {
    return !jobs_.empty() && std::all_of(jobs_.begin(), jobs_.end(), [](const auto& entry) {
      return entry.second->processes() >= world_size(*entry.second);
    });
  }
  /// In MPI_Init, a rank does not know how many there are.
  bool any_rank_starts() const {
    return std::any_of(jobs_.begin(), jobs_.end(), [](const auto& job) {
      const auto& ranks = job.second->ranks();
      return std::any_of(ranks.begin(), ranks.end(),
                         [](const auto& rank) { return rank.alive && rank.world_rank < 0; });
    });
  }
  static std::size_t world_size(const WatchedJob& job) {
    std::size_t size = 0;
    for (const RankSnapshot& rank : job.ranks()) size = std::max(size, static_cast<std::size_t>(rank.world_size));
    return size;
  }

  /// The last look at jobs that have ended while the launcher goes on, as a script that starts several.
  void close_ended_jobs() {
    for (auto& [key, job] : jobs_) {
      if (!job->ended() || job->ranks().empty() || !closed_.insert(key).second) continue;
      ask_agents(true, last_answer_patience);
      observe(key, *job, JobPhase::over);
      agents_.end(key);
    }
  }

  /// Adds the jobs of this launcher that have begun.
  void find_jobs() {
    for (const auto& [name, changed] : job_folders(folder_)) {
      // Those of other jobs, of which some may have crashed long ago, are read when a record was added.
      std::int64_t& known = known_folders_.try_emplace(name, 0).first->second;
      if (known == changed || known == own_folder) continue;
      const JobSnapshot job = read_job(folder_, name, {0});
      if (job.ranks.empty()) continue;  // its first record is being written
      known = job.ranks[0].watcher == watcher_ ? own_folder : changed;
      if (known == own_folder)
        job_of(job.ranks[0].launch.empty() ? name : job.ranks[0].launch, name).add_local(folder_, name);
    }
    for (const auto& [agent, host] : agents_.hosts()) job_of(host.hello.launch, host.hello.job);
  }

  WatchedJob& job_of(const std::string& key, const std::string& name) {
    auto& job = jobs_[key];
    if (!job) {
      Limits limits;
      limits.working = options_.patience;
      job = std::make_unique<WatchedJob>(name, realtime_, limits);
    }
    return *job;
  }

  /// Gets snapshots of the ranks on other hosts.
  void ask_agents(bool all, double patience) {
    if (agents_.hosts().empty()) return;
    agents_.look(all, seconds());
    wait_for_agents(patience, [this] { return agents_.all_answered(seconds()); });
  }

  template <class Done>
  void wait_for_agents(double patience, Done done) {
    for (const double until = seconds() + patience;;) {
      urgent_ = agents_.receive(seconds()) || urgent_;
      if (done() || seconds() >= until) return;
      std::vector<pollfd> entries;
      for (const int descriptor : agents_.descriptors()) entries.push_back({descriptor, POLLIN, 0});
      poll(entries.data(), entries.size(), 10);
    }
  }

  /// Says so if ranks work much longer than any did before while others wait. No verdict: most of them go on.
  void note_working_ranks(const WatchedJob& job) {
    double& longest = longest_work_[job.name()];
    for (const Finding& finding : job.working()) {
      const double lasts = seconds() - finding.since;
      if (lasts < working_factor * longest) continue;
      longest = lasts;
      say("bestride: " + working_text(finding, job.view(), lasts) + "\n");
    }
  }

  /// Says once that some ranks can't be watched.
  void note_other_ranks(const WatchedJob& job) {
    const std::size_t size = world_size(job), seen = job.processes();
    if (size <= seen || seconds() < patience_for_records || !incomplete_.insert(job.name()).second) return;
    say("bestride: " + std::to_string(size - seen) + " of " + std::to_string(size) +
        " ranks are not watched: they have no preload library or no record, or are on hosts that can't connect to this "
        "one" +
        (agents_.problem().empty() ? "" : " (" + agents_.problem() + ")") + "\n");
  }

  /// Nothing can be said of a job of which nothing was seen, also not that it is good.
  void note_unseen_job() const {
    if (!starts_ranks_ || !jobs_.empty() || ending()) return;
    say("bestride: no rank was watched: there is no record of a process with the preload library that has called "
        "MPI_Init" +
        (agents_.problem().empty() ? "" : ", and hosts can't connect to this process (" + agents_.problem() + ")") +
        (launcher_.exit_code() == exit_good
             ? ""
             : "; the launcher has ended with code " + std::to_string(launcher_.exit_code()) +
                   ", so a process may have ended before that: read what it has printed") +
        "; 'bestride doctor PROGRAM' checks whether the program exists and calls MPI\n");
  }

  /// The job was told to end.
  bool ending() const { return launcher_.interrupted() || aborted_at_ > 0; }

  void observe(const std::string& key, WatchedJob& job, JobPhase phase) {
    const auto now_in = [&] {
      launcher_.handle_signals();
      if (job.any_gone()) launcher_.await_end();
      if (ending()) return JobPhase::told_to_end;
      if (!is_abandoned(job)) return phase;
      abandoned_ = true;
      return JobPhase::abandoned;
    };
    report(key, job, job.observe(seconds(), now_in, agents_.updates(key, seconds())));
  }

  /// The launcher was killed, so it has ended its ranks, and before that none has crashed.
  bool is_abandoned(const WatchedJob& job) const {
    return launcher_.killed_by() != 0 &&
           std::none_of(job.ranks().begin(), job.ranks().end(),
                        [this](const RankSnapshot& rank) { return !rank.remote && rank.pid == launcher_.pid(); }) &&
           std::none_of(job.reported().begin(), job.reported().end(),
                        [](const Reported& reported) { return reported.finding.fault == Fault::crash; });
  }

  /// Says so if the launcher was killed, or has ended before its ranks.
  void say_abandoned() {
    const auto any = [this](auto is) {
      return !ending() && std::any_of(jobs_.begin(), jobs_.end(),
                                      [&](const auto& job) { return !closed_.count(job.first) && is(*job.second); });
    };
    const auto lives = [](const WatchedJob& job) {
      return std::any_of(job.ranks().begin(), job.ranks().end(), [](const RankSnapshot& rank) {
        return rank.alive && rank.unheard == 0 && rank.state <= ProcessState::initialized;
      });
    };
    for (const double until = seconds() + patience_for_ranks; any(lives) && seconds() < until;) {
      wait_for_agents(0.1, [] { return false; });
      look(true);
    }
    const bool killed = abandoned_ && !ending();
    if (!killed && !any(lives)) return;
    const int signal = launcher_.killed_by();
    say("bestride: the launcher (pid " + std::to_string(launcher_.pid()) + ")" +
        (killed ? " was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")" : " has ended") +
        (any(lives) ? "; its ranks go on and are not watched any more\n" : ", and its ranks have ended with it\n"));
  }

  void report(const std::string& key, WatchedJob& job, const WatchedJob::Changes& changes) {
    for (const std::size_t i : changes.ended) {
      const Reported& reported = job.reported()[i];
      if (job.ended()) continue;
      say("bestride: " + over_text(reported.finding, job.view(), reported.ended - reported.finding.since) + "\n");
    }
    if (changes.requested != 0) say("bestride: " + requested_text(changes.requested) + "\n");
    bool new_finding = false;
    for (const std::size_t i : changes.begun) {
      const Finding& finding = job.reported()[i].finding;
      const bool stacks = wants_stacks(finding, job.view());
      if (stacks) {
        JobStacks taken = take_stacks(key, job, finding);
        if (job.withdraw(i, taken)) break;
        stacks_[job.name()] = std::move(taken);
      }
      new_finding = true;
      if (++printed_[job.name()] <= most_verdicts)
        say(finding_text(finding, job.view(), stacks ? stacks_of(job) : nullptr, seconds() - finding.since,
                         color_wanted(STDERR_FILENO)));
      act_on(finding, job);
    }
    if (new_finding || !changes.ended.empty()) write(job, -1, new_finding);
  }

  JobStacks take_stacks(const std::string& key, const WatchedJob& job, const Finding& finding) {
    agents_.ask_for_stacks(seconds());
    const std::vector<RankSnapshot> wanted = ranks_with_stacks(finding, job.ranks());
    std::vector<HostStacks> hosts{take_host_stacks(wanted, false)};
    wait_for_agents(stacks_patience, [this] { return agents_.all_stacks_came(); });
    for (HostStacks& host : agents_.take_stacks(key)) {
      keep_ranks(host, wanted);
      hosts.push_back(std::move(host));
    }
    return merge_host_stacks(hosts);
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

  /// Only what cannot end by itself, though it may not be sure which rank is to blame.
  static bool is_certain(const Finding& finding) {
    const bool is_past = finding.mismatch && finding.mismatch->first != 0;  // the job goes on
    return finding.confidence >= 0.8 && !is_past &&
           (finding.fault == Fault::crash || finding.fault == Fault::mismatch ||
            finding.fault == Fault::unmatched_message || finding.fault == Fault::deadlock);
  }

  void act_on(const Finding& finding, const WatchedJob& job) {
    const bool has_ended = finding.fault == Fault::crash && job.ended();
    if (options_.on_fault != OnFault::abort || aborted_at_ > 0 || has_ended) return;
    if (!is_certain(finding)) {
      if (!std::exchange(left_going_, true))
        say("bestride: the job is not ended: --on-fault=abort ends it for a crash, deadlock, mismatch or unmatched "
            "message, from 80 % confidence on\n");
      return;
    }
    say("bestride: the job is ended because it can't go on (--on-fault=abort)\n");
    aborted_at_ = seconds();
    launcher_.send(SIGTERM);
  }

  /// A launcher that does not end its ranks within some seconds is ended together with them.
  void end_aborted_job() {
    if (aborted_at_ == 0 || seconds() - aborted_at_ < patience_after_abort) return;
    for (const auto& [key, job] : jobs_)
      if (job->local()) job->local()->kill_all();
    agents_.kill_ranks();
    launcher_.send(SIGKILL);
  }

  /// With BESTRIDE_LOG=info.
  void say_cost(const WatchedJob& job) const {
    const char* const log = std::getenv("BESTRIDE_LOG");
    if (!log || std::strcmp(log, "info") != 0) return;
    const WatchCost cost = watch_cost(job, seconds());
    char text[300];
    std::snprintf(
        text, sizeof text,
        "bestride: watched %zu ranks for %.1f s: this process took %.2f %% of a core, recording at most %.2f %% "
        "of a rank's time; %zu agents, %zu of them connected here, %.1f messages a second\n",
        job.processes(), seconds(), 100 * cost.watcher, 100 * cost.recording, agents_.hosts().size(),
        agents_.connections(), static_cast<double>(agents_.messages()) / seconds());
    say(text);
  }

  void finish(const std::string& key, WatchedJob& job) {
    say_cost(job);
    if (!closed_.count(key)) {
      // Twice, because a finding is confirmed by the next observation.
      for (const JobPhase phase : {JobPhase::running, JobPhase::over}) {
        ask_agents(true, last_answer_patience);
        if (job.local()) job.local()->note_ends(seconds());
        observe(key, job, phase);
      }
    }
    if (!job.reported().empty()) write(job, launcher_.exit_code(), false);
    outputs_.finish(job, launcher_.exit_code(), stacks_of(job));
    if (job.local()) job.local()->remove_records(job.ranks());
    agents_.end(key);
  }

  const WatchOptions& options_;
  JobOutputs outputs_;
  const std::string folder_;
  const Clock::time_point started_ = Clock::now();
  const double realtime_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string watcher_ = own_watcher_name();
  Agents& agents_;
  const bool starts_ranks_;  ///< the launcher is one that is known to start ranks
  static constexpr std::int64_t own_folder = -1;
  /// Of jobs on this host: when it was last read, as job_folders() says, or own_folder. Made before the launcher
  /// starts.
  std::map<std::string, std::int64_t> known_folders_ = job_folders(folder_);
  Jobs jobs_;
  std::set<std::string> closed_;  ///< keys of jobs that have ended and are not looked at any more
  double last_look_ = 0, next_look_ = 0;
  double look_cost_ = 0;  ///< of the last routine look, in CPU seconds
  unsigned looks_ = 0;
  bool suspected_ = false;  ///< at the last look
  bool urgent_ = false;     ///< an event during a look needs another look
  std::map<std::string, std::size_t> printed_;
  std::map<std::string, double> longest_work_;  ///< by job: seconds of the last line about ranks that work
  std::map<std::string, JobStacks> stacks_;     ///< by job, when its last finding was made
  std::set<std::string> incomplete_;            ///< jobs with ranks that can't be watched
  double aborted_at_ = 0;                       ///< 0: the job was not ended
  bool left_going_ = false;                     ///< it was said that --on-fault=abort does not end the job
  bool abandoned_ = false;                      ///< a job whose launcher was killed
  LauncherProcess launcher_;
};

}  // namespace

int watch(const std::string& path, const std::vector<std::string>& command, const WatchOptions& options,
          Agents& agents) {
  return Watch(path, command, options, agents).run();
}

}  // namespace bestride::inline cli
