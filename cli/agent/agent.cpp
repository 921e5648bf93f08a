// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/agent.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>

#include "base/variables.hpp"
#include "cli/agent/lone_watch.hpp"
#include "cli/hosts/head_link.hpp"
#include "cli/job/local_ranks.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/watcher.hpp"

namespace bestride::inline cli {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds.
constexpr double pulse_period = 1, suspected_pulse_period = 0.25;
/// The folder is read for new ranks; at first at every pulse, and more often while the ranks of this host start.
constexpr double refresh_period = 10, begin_period = 20, start_period = 2, start_refresh_period = 0.1;
constexpr double connect_patience = 10;
constexpr double end_patience = 10;  ///< after the last rank has ended

class Agent {
 public:
  Agent(const std::string& job, std::string verdict_folder)
      : job_(job), verdict_folder_(std::move(verdict_folder)), ranks_(records_folder(), job) {}

  void run() {
    yield_cores();
    connect();
    for (refresh(); !over(); wait()) {
      const bool ended = ranks_.note_ends(seconds());
      if (starts() && seconds() - refreshed_ >= start_refresh_period) refresh();
      if (seconds() >= next_pulse_ || ended) pulse(ended);
      // After everything that is sent: a message that arrives while sending does not wake wait().
      if (link_ && !handle_messages()) break;
      if (!lone_ && link_ && seconds() - link_->heard() > head_patience) be_alone();
      if (lone_) lone_->look(ended);
    }
    if (lone_) lone_->finish();
    ranks_.remove_records(ranks_.read(0).ranks);
    const std::string folder = records_folder() + "/" + job_;
    unlink((folder + "/" + agent_file).c_str());
    rmdir(folder.c_str());
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - started_).count(); }

  /// Uses any core that the ranks leave idle: the rank that started this process may be bound to one core.
  static void yield_cores() {
    cpu_set_t all;
    std::memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
    setpriority(PRIO_PROCESS, 0, 10);
  }

  void connect() {
    const std::string& addresses = Settings::get_silently().text("BESTRIDE_WATCH");
    if (addresses.find("://") == std::string::npos) return be_alone();
    const JobSnapshot now = ranks_.read(0);
    const Hello hello{BESTRIDE_VERSION, own_host(), job_, now.ranks.empty() ? "" : now.ranks[0].launch};
    auto connected = HeadLink::connect(addresses, Settings::get_silently().text("BESTRIDE_WATCH_KEY"), hello,
                                       connect_patience, seconds());
    if (!connected) return be_alone();
    link_.emplace(std::move(*connected));
  }

  bool starts() const { return seconds() < start_period; }
  void be_alone() { lone_ = std::make_unique<LoneWatch>(job_, verdict_folder_); }

  void refresh() {
    const JobSnapshot now = ranks_.read(0);
    alive_ = 0;
    for (const RankSnapshot& rank : now.ranks) alive_ += rank.alive ? 1 : 0;
    if (alive_ > 0) last_alive_ = seconds();
    refreshed_ = seconds();
  }

  bool over() const {
    return alive_ == 0 && seconds() - last_alive_ > (lone_ ? 0 : end_patience) && !(link_ && link_->relays(seconds()));
  }

  void wait() {
    std::vector<pollfd> entries;
    if (link_)
      for (const int descriptor : link_->descriptors()) entries.push_back({descriptor, POLLIN, 0});
    entries.push_back({ranks_.ends_descriptor(), POLLIN, 0});
    double until = starts() ? std::min(next_pulse_, refreshed_ + start_refresh_period) : next_pulse_;
    if (lone_) until = std::min(until, lone_->next_look());
    if (link_) until = std::min(until, link_->next_work());
    poll(entries.data(), entries.size(), std::max(static_cast<int>(1000 * (until - seconds())), 0) + 1);
  }

  void pulse(bool ended) {
    if (ended || seconds() < begin_period || seconds() - refreshed_ > refresh_period) refresh();
    const bool suspects = ranks_.suspects(seconds());
    if (link_) send(message(Pulse{suspects, ended, static_cast<std::uint32_t>(ranks_.processes())}));
    next_pulse_ = seconds() + (suspects && !suspected_ ? suspected_pulse_period : pulse_period);
    suspected_ = suspects;
  }

  /// False if the job has ended.
  bool handle_messages() {
    while (const auto received = link_->receive(seconds())) {
      const auto kind = kind_of(*received);
      if (!kind) continue;
      switch (*kind) {
        case MessageKind::look:
          if (const auto look = read_look(*received)) answer(*look);
          break;
        case MessageKind::take_stacks: send(message(take_host_stacks(ranks_.read(0).ranks, false))); break;
        case MessageKind::kill_ranks: ranks_.kill_all(); break;
        case MessageKind::end: return false;
        default: break;
      }
    }
    if (seconds() - link_->heard() <= head_patience) lone_.reset();  // the head is back
    return true;
  }

  void send(const std::string& bytes) { link_->send(bytes, seconds()); }

  void answer(const Look& look) {
    ranks_.note_ends(seconds());
    HostRanks answer{look.number, seconds(), ranks_.read(look.finished_calls).ranks};
    if (connections_ != link_->connections()) sent_.clear();
    connections_ = link_->connections();
    for (RankSnapshot& rank : answer.ranks) rank.partial = !sent_.emplace(rank).second && !look.full;
    send(message(answer));
  }

  const std::string job_, verdict_folder_;
  const Clock::time_point started_ = Clock::now();
  LocalRanks ranks_;
  std::optional<HeadLink> link_;
  unsigned connections_ = 0;                             ///< of link_, at the last answer
  std::unordered_set<ProcessKey, ProcessKeyHash> sent_;  ///< processes of which this connection got a full snapshot
  std::unique_ptr<LoneWatch> lone_;
  std::size_t alive_ = 0;  ///< ranks, at the last refresh
  double next_pulse_ = 0, refreshed_ = 0, last_alive_ = 0;
  bool suspected_ = false;
};

}  // namespace

void add_agent(CLI::App& app) {
  struct Words {
    std::string job, folder;
  };
  const auto words = std::make_shared<Words>();
  CLI::App* const command =
      app.add_subcommand("agent", "watch the ranks of a job on this host (started by the library)");
  command->add_option("job", words->job, "the job's folder in /dev/shm/bestride-<uid>")->required();
  command->add_option("folder", words->folder, "where verdict files are written")->required();
  command->callback([words] { Agent(words->job, words->folder).run(); });
}

}  // namespace bestride::inline cli
