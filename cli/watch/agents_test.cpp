// SPDX-License-Identifier: Apache-2.0
// What the head knows of an agent that answers, stops answering, and answers again. The test passes all times to the
// head, so it needs no clock.
#include "cli/watch/agents.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "telemetry/waits/sample_job.hpp"

namespace bestride::inline cli {
namespace {

class AgentsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!head_.problem().empty()) GTEST_SKIP() << head_.problem();
    std::atomic<bool> done = false;
    std::string problem;
    std::thread connecting([&] {
      auto connected = AgentConnection::connect(head_.addresses(), head_.keys(),
                                                message(Hello{BESTRIDE_VERSION, "node1", "hydra-1", "kvs_1", 7}), 30);
      if (connected)
        agent_.emplace(std::move(*connected));
      else
        problem = connected.error().text;
      done = true;
    });
    receive(0, [&] { return done.load(); });
    connecting.join();
    ASSERT_TRUE(agent_) << problem;
    ASSERT_EQ(head_.hosts().size(), 1u);
  }

  const Agents::Host& host() const { return head_.hosts().begin()->second; }

  /// The head receives at `seconds`, until `done`.
  void receive(double seconds, const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (head_.receive(seconds), !done()) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::vector<pollfd> entries;
      for (const int descriptor : head_.descriptors()) entries.push_back({descriptor, POLLIN, 0});
      poll(entries.data(), entries.size(), 5);
    }
  }
  void pulse(double seconds) {
    agent_->send(message(Pulse{false, false, ++pulses_}));
    receive(seconds, [&] { return host().pulse.ranks == pulses_; });
  }
  Look next_look() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < until) {
      const auto received = agent_->receive();
      if (const auto look = received ? read_look(*received) : std::nullopt) return *look;
      pollfd entry{agent_->descriptors()[0], POLLIN, 0};
      poll(&entry, 1, 5);
    }
    ADD_FAILURE() << "the agent was not asked";
    return {};
  }
  /// The agent skips all looks before this one, which it answers. `there` and `ended`, when its ranks ended, are
  /// seconds of its clock.
  void answer(double seconds, std::uint32_t last, double there = 0, double ended = 0) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (std::uint32_t number = 0; number != last;) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      const auto received = agent_->receive();
      const auto look = received && kind_of(*received) == MessageKind::look ? read_look(*received) : std::nullopt;
      if (!look) {
        pollfd entry{agent_->descriptors()[0], POLLIN, 0};
        poll(&entry, 1, 5);
        continue;
      }
      number = look->number;
      std::vector<RankSnapshot> ranks = SampleJob(2).ranks;
      for (RankSnapshot& rank : ranks) rank.ended = ended;
      if (number == last) agent_->send(message(HostRanks{number, there, std::move(ranks)}));
    }
    receive(seconds, [&] { return host().asked == 0; });
  }
  double unheard(double seconds) {
    const std::vector<HostUpdate> updates = head_.updates("kvs_1", seconds);
    EXPECT_EQ(updates.size(), 1u);
    return updates.empty() ? -1 : updates[0].unheard;
  }

  Agents head_;
  std::optional<AgentConnection> agent_;
  std::uint32_t pulses_ = 0;
};

TEST_F(AgentsTest, AnAgentThatLivesButAnswersNoMore) {
  head_.look(true, 1);
  EXPECT_FALSE(head_.all_answered(1));
  answer(1, 1);
  EXPECT_EQ(unheard(1), 0);
  head_.look(false, 2);
  EXPECT_FALSE(head_.all_answered(2));
  EXPECT_GT(unheard(2), 0);
  for (int i = 3; i <= 12; ++i) {
    head_.look(false, i);
    pulse(i);
  }
  EXPECT_EQ(unheard(12), 10) << "since the first look that it has not answered";
  EXPECT_TRUE(head_.all_answered(12)) << "it is not waited for any more";
  EXPECT_TRUE(head_.news(12).empty());
  pulse(13);
  const std::vector<std::string> news = head_.news(13);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0], "the agent on node1 has not answered for 11.0 s: ranks 0,1 are not watched now");
  EXPECT_TRUE(head_.news(14).empty());
  // Those that it did not read may have been dropped.
  head_.look(false, 15);
  answer(15, 13);
  EXPECT_EQ(unheard(15), 0);
  EXPECT_EQ(head_.news(15), std::vector<std::string>{"the agent on node1 answers again"});
}

/// The end of a rank is in the agent's seconds. An answer that is late does not make it later.
TEST_F(AgentsTest, TheEndOfARankIsKnownAsExactlyAsTheFastestAnswer) {
  std::uint32_t looks = 0;
  const auto ended_at = [&](double sent, double arrived) {
    head_.look(true, sent);
    answer(arrived, ++looks, sent + 1000, 1003.5);
    const auto updates = head_.updates("kvs_1", arrived);
    return updates.empty() || !updates[0].ranks ? -1 : updates[0].ranks->at(0).ended;
  };
  EXPECT_NEAR(ended_at(4, 4.75), 4.25, 1e-9);
  EXPECT_NEAR(ended_at(5, 5.25), 3.75, 1e-9);
  EXPECT_NEAR(ended_at(6, 8), 3.75, 1e-9);
  EXPECT_NEAR(ended_at(100000, 100001), 4.5, 1e-9) << "after a day, clocks may have drifted apart";
}

TEST_F(AgentsTest, AFullAnswerThatComesLateIsNotLost) {
  const auto send = [&](std::uint32_t look, bool partial) {
    std::vector<RankSnapshot> ranks = SampleJob(2).ranks;
    for (RankSnapshot& rank : ranks)
      rank.pid = 100 + rank.world_rank, rank.executable = partial ? "" : "solver", rank.partial = partial;
    agent_->send(message(HostRanks{look, 0, std::move(ranks)}));
  };
  head_.look(true, 1);
  head_.look(false, 2);
  send(1, false);
  send(2, true);
  receive(2, [&] { return host().asked == 0; });
  const std::vector<HostUpdate> updates = head_.updates("kvs_1", 2);
  ASSERT_TRUE(updates.size() == 1 && updates[0].ranks);
  EXPECT_EQ(updates[0].ranks->at(1).executable, "solver");
  EXPECT_FALSE(head_.updates("kvs_1", 2)[0].ranks) << "nothing new has come";
}

TEST_F(AgentsTest, ANewCallSiteIsAskedFor) {
  const auto answer_with = [&](std::size_t sites, bool partial) {
    head_.look(false, 1);
    const Look look = next_look();
    std::vector<RankSnapshot> ranks = SampleJob(1).ranks;
    for (RankSnapshot& rank : ranks) rank.alive = true, rank.partial = partial, rank.sites.resize(sites);
    agent_->send(message(HostRanks{look.number, 0, std::move(ranks)}));
    receive(1, [&] { return host().asked == 0; });
    return look.full;
  };
  answer_with(1, false);
  EXPECT_FALSE(answer_with(1, true)) << "everything is known";
  EXPECT_FALSE(answer_with(2, true));
  EXPECT_TRUE(answer_with(2, false)) << "one is not known";
  EXPECT_FALSE(answer_with(2, true));
}

/// ZeroMQ makes a lost connection again by itself, under another name.
TEST_F(AgentsTest, AnAgentOnANewConnectionIsAskedWhoItIs) {
  auto again = AgentConnection::begin(head_.addresses(), head_.keys(), message(Pulse{false, false, 5}));
  ASSERT_TRUE(again);
  receive(1, [&] { return again->answer() != AgentConnection::Answer::none; });
  EXPECT_EQ(host().pulse.ranks, 0u);
  again->send(message(Hello{BESTRIDE_VERSION, "node1", "hydra-1", "kvs_1", 7}));
  again->send(message(Pulse{false, false, 6}));
  receive(1, [&] { return host().pulse.ranks == 6; });
  EXPECT_EQ(head_.hosts().size(), 1u) << "it is the same agent";
}

TEST_F(AgentsTest, AnAgentOnItsWayToARelayMayStillSendSomethingDirectly) {
  auto relay = AgentConnection::begin(head_.addresses(), head_.keys(),
                                      message(Hello{BESTRIDE_VERSION, "node2", "hydra-1", "kvs_1", 8}));
  ASSERT_TRUE(relay);
  receive(1, [&] { return relay->answer() == AgentConnection::Answer::welcome; });
  const Hello hello{BESTRIDE_VERSION, "node1", "hydra-1", "kvs_1", 7};
  relay->send(message(std::vector<Bundled>{{7, message(hello)}}));
  receive(1, [&] { return host().relay == 8; });
  agent_->send(message(Pulse{}));
  receive(1, [&] { return agent_->receive() == message(MessageKind::repeat_hello); });
  agent_->send(message(hello));
  receive(1, [&] { return host().relay == 0; });
  relay->send(message(std::vector<Bundled>{{7, message(Pulse{false, false, 3})}}));
  receive(1, [&] { return host().pulse.ranks == 3; });
  EXPECT_EQ(host().relay, 8u);
  EXPECT_EQ(head_.connections(), 1u) << "that of the relay";
}

TEST_F(AgentsTest, AnAgentOfALaunchThatHasEndedIsTold) {
  head_.end("kvs_1");
  agent_->send(message(Pulse{}));
  receive(1, [&] { return agent_->receive() == message(MessageKind::repeat_hello); });
  agent_->send(message(Hello{BESTRIDE_VERSION, "node1", "hydra-1", "kvs_1", 7}));
  receive(1, [&] { return agent_->receive() == message(MessageKind::end); });
  EXPECT_TRUE(head_.hosts().empty());
}

TEST_F(AgentsTest, StacksAreNotExpectedOfAnAgentThatIsNotHeard) {
  pulse(1);
  head_.ask_for_stacks(2);
  EXPECT_FALSE(head_.all_stacks_came());
  agent_->send(message(HostStacks{}));
  receive(20, [&] { return head_.all_stacks_came(); });
  EXPECT_EQ(head_.take_stacks("kvs_1").size(), 1u);
  head_.ask_for_stacks(24);
  EXPECT_TRUE(head_.all_stacks_came()) << "it was last heard at 20";
}

TEST_F(AgentsTest, AnAgentThatHasNeverAnswered) {
  head_.look(true, 1);
  pulse(12);
  const std::vector<std::string> news = head_.news(12);
  ASSERT_EQ(news.size(), 1u);
  EXPECT_EQ(news[0], "the agent on node1 has not answered for 11.0 s: its ranks are not watched now");
}

TEST_F(AgentsTest, AnAgentThatIsNotHeardAnyMore) {
  head_.look(true, 1);
  answer(1, 1);
  EXPECT_TRUE(head_.news(6).empty());
  ASSERT_EQ(head_.news(7).size(), 1u);
  pulse(8);
  EXPECT_EQ(head_.news(8).size(), 1u);
}

}  // namespace
}  // namespace bestride::inline cli
