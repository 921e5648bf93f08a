// SPDX-License-Identifier: Apache-2.0
// A head and a tree of agents in one process: relays, what comes through them, and relays that fail.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "cli/hosts/head_link.hpp"
#include "cli/watch/agents.hpp"
#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t fan_out = 2;

class AgentTreeTest : public testing::Test {
 protected:
  struct Agent {
    HeadLink link;
    bool suspects = false;
    double next_pulse = 0;
    std::map<MessageKind, int> received = {};
    unsigned connections = 0;
  };

  void SetUp() override {
    if (!head_.problem().empty()) GTEST_SKIP() << head_.problem();
  }

  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(); }

  void start(int number) {
    std::atomic<bool> done = false;
    std::thread connecting([&] {
      auto connected =
          HeadLink::connect(head_.addresses(), head_.keys(),
                            {BESTRIDE_VERSION, "node" + std::to_string(number), "hydra-1", "kvs_1"}, 60, seconds());
      if (connected) agents_.emplace(number, std::make_unique<Agent>(Agent{std::move(*connected)}));
      done = true;
    });
    while (!done) {
      head_.receive(seconds());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    connecting.join();
  }
  void start_all(int count) {
    for (int i = 0; i < count; ++i) {
      start(i);
      ASSERT_EQ(agents_.count(i), 1u);
    }
  }

  /// Like the agent: it does nothing more once it is told to end. Until then each message of it that the head
  /// receives after end() is answered with another end.
  void serve(int number, Agent& agent) {
    while (agent.received[MessageKind::end] == 0) {
      const auto bytes = agent.link.receive(seconds());
      if (!bytes) break;
      const MessageKind kind = *kind_of(*bytes);
      ++agent.received[kind];
      if (kind == MessageKind::take_stacks) agent.link.send(message(HostStacks{}), seconds());
      if (kind != MessageKind::look) continue;
      const Look look = *read_look(*bytes);
      RankSnapshot rank = SampleJob(1).ranks[0];
      rank.host = "node" + std::to_string(number), rank.pid = 1000 + number, rank.executable = "solver";
      rank.partial = agent.connections == agent.link.connections() && !look.full;
      agent.connections = agent.link.connections();
      agent.link.send(message(HostRanks{look.number, seconds(), {rank}}), seconds());
    }
    if (agent.received[MessageKind::end] > 0 || seconds() < agent.next_pulse) return;
    agent.link.send(message(Pulse{agent.suspects, false, 1}), seconds());
    agent.next_pulse = seconds() + 0.2;
  }

  /// Head and agents work until `done`.
  void until(const std::function<bool()>& done, const char* what) {
    const double limit = seconds() + 60;
    while (head_.receive(seconds()), !done()) {
      ASSERT_LT(seconds(), limit) << what;
      for (auto& [number, agent] : agents_) serve(number, *agent);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }

  std::size_t direct() const {
    std::size_t count = 0;
    for (const auto& [agent, host] : head_.hosts()) count += host.relay == 0 && seconds() - host.heard < 3 ? 1 : 0;
    return count;
  }
  bool is_balanced() const {
    for (const auto& [number, agent] : agents_)
      if (agent->link.relayed() != is_relayed(number)) return false;
    return direct() <= fan_out;
  }
  const Agents::Host* host(int number) const {
    for (const auto& [agent, host] : head_.hosts())
      if (host.hello.host == "node" + std::to_string(number)) return &host;
    return nullptr;
  }
  bool is_relayed(int number) const { return host(number)->relay != 0; }
  /// An agent on which others depend.
  int a_relay() const {
    for (const auto& [number, agent] : agents_)
      if (agent->link.relays(seconds())) return number;
    return -1;
  }
  void all_answer(bool full) {
    head_.look(full, seconds());
    until([&] { return head_.all_answered(seconds()); }, "answers");
  }

  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Agents head_{fan_out};
  std::map<int, std::unique_ptr<Agent>> agents_;
};

TEST_F(AgentTreeTest, AgentsBeyondTheFanOutAreConnectedThroughOthers) {
  start_all(6);
  until([&] { return is_balanced(); }, "a tree");
  all_answer(false);
  std::vector<HostUpdate> updates = head_.updates("kvs_1", seconds());
  ASSERT_EQ(updates.size(), 6u);
  for (const HostUpdate& update : updates) {
    EXPECT_EQ(update.unheard, 0);
    ASSERT_TRUE(update.ranks && update.ranks->size() == 1);
    EXPECT_EQ(update.ranks->at(0).host, update.host);
    EXPECT_EQ(update.ranks->at(0).executable, "solver") << "the first answer is a full one";
  }
  // One message to a relay is for all agents behind it.
  head_.ask_for_stacks(seconds());
  until([&] { return head_.all_stacks_came(); }, "stacks");
  EXPECT_EQ(head_.take_stacks("kvs_1").size(), 6u);
  for (const auto& [number, agent] : agents_) EXPECT_EQ(agent->received[MessageKind::take_stacks], 1);
}

TEST_F(AgentTreeTest, ASuspicionArrivesThroughARelay) {
  start_all(5);
  until([&] { return is_balanced(); }, "a tree");
  EXPECT_FALSE(head_.suspects());
  for (auto& [number, agent] : agents_)
    if (agent->link.relayed()) agent->suspects = true;
  until([&] { return head_.suspects(); }, "the suspicion");
}

TEST_F(AgentTreeTest, AgentsWhoseRelayIsGoneComeBack) {
  start_all(6);
  until([&] { return is_balanced(); }, "a tree");
  const int lost = a_relay();
  ASSERT_GE(lost, 0);
  agents_.erase(lost);
  const double when = seconds();
  double longest = 0;
  const auto all_heard = [&] {
    bool all = true;
    for (const auto& [number, agent] : agents_) {
      longest = std::max(longest, seconds() - host(number)->heard);
      all = all && host(number)->heard > when + 3 && is_relayed(number) == agent->link.relayed();
    }
    return all && is_balanced();
  };
  until(all_heard, "the others");
  all_answer(false);
  EXPECT_GT(host(lost)->asked, 0);
}

TEST_F(AgentTreeTest, TheEndReachesAllAgents) {
  start_all(5);
  until([&] { return is_balanced(); }, "a tree");
  head_.end("kvs_1");
  const auto all_told = [&] {
    return std::all_of(agents_.begin(), agents_.end(),
                       [](auto& agent) { return agent.second->received[MessageKind::end] == 1; });
  };
  until(all_told, "the end");
  EXPECT_TRUE(head_.hosts().empty());
}

/// A host whose firewall blocks incoming connections.
TEST_F(AgentTreeTest, AnAgentThatCannotReachARelayStaysWithTheHead) {
  auto listener = Listener::open();
  ASSERT_TRUE(listener);
  std::optional<HeadLink> link;
  std::atomic<bool> done = false;
  std::thread connecting([&] {
    if (auto connected = HeadLink::connect(listener->addresses(), listener->keys(), {BESTRIDE_VERSION, "n", "j", "l"},
                                           60, seconds()))
      link.emplace(std::move(*connected));
    done = true;
  });
  std::string name;
  const auto receive = [&] {
    std::vector<MessageKind> kinds;
    while (const auto received = listener->receive()) {
      kinds.push_back(*kind_of(received->bytes));
      name = received->agent;
      if (kinds.back() == MessageKind::hello) listener->send(name, message(MessageKind::welcome));
    }
    return kinds;
  };
  while (!done) receive();
  connecting.join();
  ASSERT_TRUE(link);
  // 192.0.2.0/24 is reserved for documentation.
  listener->send(name, message(MessageKind::redirect, {"tcp://192.0.2.1:9", listener->own_key()}));
  for (const double until = seconds() + 4; seconds() < until;) {
    EXPECT_FALSE(link->receive(seconds()));
    receive();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_FALSE(link->relayed());
  EXPECT_EQ(link->connections(), 1u);
  listener->send(name, message(MessageKind::repeat_hello));
  int hellos = 0;
  for (const double until = seconds() + 60; hellos == 0 && seconds() < until;) {
    EXPECT_FALSE(link->receive(seconds()));
    for (const MessageKind kind : receive()) hellos += kind == MessageKind::hello ? 1 : 0;
  }
  EXPECT_EQ(hellos, 1);
  EXPECT_EQ(link->connections(), 2u) << "what was sent before may be lost";
  link->send(message(Pulse{}), seconds());
  bool came = false;
  for (const double until = seconds() + 60; !came && seconds() < until;)
    for (const MessageKind kind : receive()) came = came || kind == MessageKind::pulse;
  EXPECT_TRUE(came);
}

}  // namespace
}  // namespace bestride::inline cli
