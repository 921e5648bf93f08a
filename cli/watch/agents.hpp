// SPDX-License-Identifier: Apache-2.0
#pragma once
// Agents: what the agents on other hosts have told the process that watches the job.
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/hosts/connection.hpp"
#include "cli/hosts/messages.hpp"

namespace bestride::inline cli {

/// All times: seconds since the launcher was started. Not thread-safe.
class Agents {
 public:
  struct Host {
    Hello hello;
    Pulse pulse;
    double heard = 0;  ///< when its last message came
    /// Our clock less the agent's, and when that was measured: of the message that was the least late.
    double clock_offset = std::numeric_limits<double>::infinity(), clock_measured = 0;
    std::vector<RankSnapshot> ranks;
    double asked = 0;     ///< for the first snapshots that have not come yet; 0: all came
    bool silent = false;  ///< it has not been heard or has not answered for some time, which was said
    bool stacks_expected = false;
    std::optional<HostStacks> stacks;
  };

  /// Without a connection there are no agents; problem() says why.
  Agents();
  const std::string& problem() const noexcept { return problem_; }
  /// BESTRIDE_WATCH and BESTRIDE_WATCH_KEY for the ranks; "" if there is no connection.
  std::string addresses() const { return connection_ ? connection_->addresses() : ""; }
  std::string keys() const { return connection_ ? connection_->keys() : ""; }

  std::vector<int> descriptors() const;
  /// Takes all messages that have come. True if a rank has ended somewhere, or an agent is new.
  bool receive(double seconds);
  /// A rank on one of the hosts makes no progress.
  bool suspects() const;
  const std::map<std::string, Host>& hosts() const noexcept { return hosts_; }

  /// Asks all hosts for snapshots. `all`: with call sites, peers, and more finished calls.
  void look(bool all, double seconds);
  /// Every host has answered the last look, except those that have not answered for some time.
  bool all_answered(double seconds) const;
  /// The ranks of a job, as known at `seconds`. Those of a host that has not answered the last look yet are as they
  /// were before, which RankSnapshot::unheard says.
  std::vector<RankSnapshot> ranks_of(const std::string& launch, double seconds) const;

  void ask_for_stacks(double seconds);
  /// From all hosts, except those that had not been heard for some time when they were asked. An agent is not heard
  /// while it takes stacks.
  bool all_stacks_came() const;
  /// Those that came since ask_for_stacks(), of the hosts of one job.
  std::vector<HostStacks> take_stacks(const std::string& launch);

  void kill_ranks() { send_all(message(MessageKind::kill_ranks)); }
  /// A job has ended: its agents remove the records, end, and are forgotten.
  void end(const std::string& launch);

  /// One line for each host that has become silent or has answered again since the last call.
  std::vector<std::string> news(double seconds);

 private:
  static void set_clock(Host& host, double there, double here);
  void send_all(const std::string& bytes);
  bool handle(const std::string& agent, const std::string& bytes, double seconds);

  std::optional<HeadConnection> connection_;
  std::string problem_;
  std::map<std::string, Host> hosts_;        ///< by connection
  std::vector<std::string> other_versions_;  ///< hosts whose agent has another version, not yet said
  std::uint32_t looks_ = 0;
  double asked_ = 0;  ///< when the last look was asked for
};

}  // namespace bestride::inline cli
