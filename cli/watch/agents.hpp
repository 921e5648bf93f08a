// SPDX-License-Identifier: Apache-2.0
#pragma once
// Agents: what the agents on other hosts have sent to the process that watches the job.
//
// They form a tree: up to `fan_out` agents of a launch are connected here; each further agent is connected through one
// of these. An agent whose relay fails reconnects here, and is redirected to another one.
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/hosts/connection.hpp"
#include "cli/hosts/messages.hpp"
#include "cli/watch/rank_updates.hpp"

namespace bestride::inline cli {

/// All times: seconds since the launcher was started. Not thread-safe.
class Agents {
 public:
  struct Host {
    Hello hello;
    Pulse pulse;
    double heard = 0;  ///< when its last message came
    /// Our clock minus the agent's, and when it was measured: from the message with the least delay.
    double clock_offset = std::numeric_limits<double>::infinity(), clock_measured = 0;
    std::string connection;                     ///< "": through a relay
    std::uint64_t relay = 0;                    ///< the agent through which it is connected; 0: none
    double asked_to_relay = 0, redirected = 0;  ///< when; 0: not yet
    unsigned redirections = 0;                  ///< since it was last connected to a relay
    std::optional<RelayAddress> as_relay;       ///< other agents can connect there
    /// A process there, as of the last answer.
    struct Process {
      std::int32_t rank;
      int pid;
      std::uint64_t start;
      bool alive;
      std::optional<std::size_t> sites;  ///< call sites in the last full snapshot; none: there was none
      bool complete;                     ///< that has all call sites
    };
    std::vector<Process> processes;
    std::optional<std::vector<RankSnapshot>> arrived;  ///< since updates() was last called
    double asked = 0;                                  ///< for the first snapshots that have not come yet; 0: all came
    bool silent = false;  ///< it has not been heard or has not answered for some time, which was reported
    bool stacks_expected = false;
    std::optional<HostStacks> stacks;
  };

  static constexpr std::size_t usual_fan_out = 32;
  /// Opens the connection for agents. Without one there are no agents; problem() says why. `fan_out`: at least 1.
  explicit Agents(std::size_t fan_out = usual_fan_out);
  const std::string& problem() const noexcept { return problem_; }
  /// BESTRIDE_WATCH and BESTRIDE_WATCH_KEY for the ranks; "" if there is no connection.
  std::string addresses() const { return listener_ ? listener_->addresses() : ""; }
  std::string keys() const { return listener_ ? listener_->keys() : ""; }

  std::vector<int> descriptors() const;
  /// Takes all messages that have come. True if a rank has ended somewhere, or an agent is new.
  bool receive(double seconds);
  /// A rank on one of the hosts makes no progress.
  bool suspects() const;
  /// The hosts with an agent, by Hello::agent.
  const std::map<std::uint64_t, Host>& hosts() const noexcept { return hosts_; }
  /// Messages that came to this process; one of a relay may carry those of several agents.
  std::uint64_t messages() const noexcept { return messages_; }
  /// Agents that are connected to this process.
  std::size_t connections() const noexcept { return agents_.size(); }

  /// Asks all hosts for snapshots. `all`: with call sites, peers, and more finished calls.
  void look(bool all, double seconds);
  /// Every host has answered the last look, except those that have not answered for some time.
  bool all_answered(double seconds) const;
  /// What has come from the hosts of a job since the last call. A host that has not answered the last look yet has
  /// HostUpdate::unheard.
  std::vector<HostUpdate> updates(const std::string& launch, double seconds);

  void ask_for_stacks(double seconds);
  /// True if the stacks of all hosts have come, except of those that had not been heard for some time when they were
  /// asked. An agent is not heard while it takes stacks.
  bool all_stacks_came() const;
  /// The stacks that came since ask_for_stacks(), of the hosts of one job.
  std::vector<HostStacks> take_stacks(const std::string& launch);

  void kill_ranks() { send_all(message(MessageKind::kill_ranks)); }
  /// A job has ended: its agents remove the records, end, and are forgotten.
  void end(const std::string& launch);

  /// One line for each host that has become silent or has answered again since the last call.
  std::vector<std::string> news(double seconds);

 private:
  static void set_clock(Host& host, double there, double here);
  void send_all(const std::string& bytes);
  bool handle(const std::string& connection, const std::string& bytes, double seconds);
  bool handle_hello(const std::string& connection, std::uint64_t relay, const Hello& hello, double seconds);
  bool handle(std::uint64_t agent, const std::string& bytes, double seconds);
  void set_route(std::uint64_t agent, const std::string& connection, std::uint64_t relay);
  void take_answer(Host& host, HostRanks answer, double seconds);
  void balance(double seconds);
  void balance(const std::vector<std::uint64_t>& agents, double seconds);

  const std::size_t fan_out_;
  std::optional<Listener> listener_;
  std::string problem_;
  std::map<std::uint64_t, Host> hosts_;
  std::unordered_map<std::string, std::uint64_t> agents_;  ///< by connection
  double balanced_ = 0;
  std::uint64_t messages_ = 0;
  std::set<std::string> ended_;              ///< launches
  std::vector<std::string> other_versions_;  ///< hosts whose agent has another version, not yet said
  std::uint32_t looks_ = 0;
  double asked_ = 0;  ///< when the last look was asked for
};

}  // namespace bestride::inline cli
