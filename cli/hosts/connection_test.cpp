// SPDX-License-Identifier: Apache-2.0
// A head and its agents in one process: messages in both directions, and connections that are refused.
#include "cli/hosts/connection.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <thread>
#include <zmq.hpp>

#include "cli/hosts/messages.hpp"

namespace bestride::inline cli {
namespace {

using Clock = std::chrono::steady_clock;

const std::string greeting = message(Hello{"1", "node1", "hydra-1", "kvs_1"});

class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = Listener::open();
    if (!opened) GTEST_SKIP() << opened.error().text;
    head_.emplace(std::move(*opened));
  }

  /// Lets the head work until `done`; each message goes to `handle`.
  void serve(const std::function<bool()>& done, double seconds,
             const std::function<void(const Listener::Received&)>& handle) {
    for (const auto until = Clock::now() + std::chrono::duration<double>(seconds); !done() && Clock::now() < until;) {
      while (const auto received = head_->receive()) handle(*received);
      std::vector<pollfd> entries;
      for (const int descriptor : head_->descriptors()) entries.push_back({descriptor, POLLIN, 0});
      poll(entries.data(), entries.size(), 5);
    }
  }

  struct Attempt {
    std::optional<AgentConnection> agent;
    std::string problem;
    std::string name;          ///< as the head calls it
    std::size_t messages = 0;  ///< that the head received meanwhile
  };
  /// Connects while the head answers with `answer`.
  Attempt connect(const std::string& addresses, const std::string& keys, double seconds,
                  const std::string& answer = message(MessageKind::welcome)) {
    Attempt attempt;
    std::atomic<bool> done = false;
    std::thread thread([&] {
      auto connected = AgentConnection::connect(addresses, keys, greeting, seconds);
      if (connected)
        attempt.agent.emplace(std::move(*connected));
      else
        attempt.problem = connected.error().text;
      done = true;
    });
    serve([&] { return done.load(); }, 30,
          [&](const Listener::Received& received) {
            ++attempt.messages;
            attempt.name = received.agent;
            EXPECT_EQ(received.bytes, greeting);
            head_->send(received.agent, answer);
          });
    thread.join();
    return attempt;
  }

  std::optional<Listener> head_;
};

TEST_F(ConnectionTest, MessagesArriveInBothDirections) {
  Attempt attempt = connect(head_->addresses(), head_->keys(), 10);
  ASSERT_TRUE(attempt.agent) << attempt.problem;
  const std::string large(1 << 20, 'x');
  attempt.agent->send("first");
  attempt.agent->send(large);
  std::vector<std::string> came;
  serve([&] { return came.size() == 2; }, 10,
        [&](const Listener::Received& received) { came.push_back(received.bytes); });
  EXPECT_EQ(came, (std::vector<std::string>{"first", large}));
  head_->send(attempt.name, "back");
  std::optional<std::string> back;
  serve([&] { return (back = attempt.agent->receive()).has_value(); }, 10, [](const auto&) {});
  EXPECT_EQ(back, "back");
}

TEST_F(ConnectionTest, AnAddressThatDoesNotAnswerIsNoObstacle) {
  // 192.0.2.0/24 is reserved for documentation.
  const Attempt attempt = connect("tcp://192.0.2.1:9," + head_->addresses(), head_->keys(), 10);
  EXPECT_TRUE(attempt.agent) << attempt.problem;
}

TEST_F(ConnectionTest, AnotherHeadsKeyIsRefused) {
  const auto other = Listener::open();
  ASSERT_TRUE(other);
  const Attempt attempt = connect(head_->addresses(), other->keys(), 0.5);
  EXPECT_FALSE(attempt.agent);
  EXPECT_EQ(attempt.messages, 0U);
}

TEST_F(ConnectionTest, AnAgentOfAnotherJobIsRefused) {
  // It knows the head's own key, but not those of the agents.
  const auto other = Listener::open();
  ASSERT_TRUE(other);
  const std::string keys = head_->keys().substr(0, 64) + other->keys().substr(64);
  const Attempt attempt = connect(head_->addresses(), keys, 0.5);
  EXPECT_FALSE(attempt.agent);
  EXPECT_EQ(attempt.messages, 0U);
}

TEST_F(ConnectionTest, WithoutAKeyNothingArrives) {
  zmq::context_t context(1);
  zmq::socket_t plain(context, zmq::socket_type::dealer);
  plain.set(zmq::sockopt::linger, 0);
  const std::string addresses = head_->addresses();
  plain.connect(addresses.substr(0, addresses.find(',')));
  plain.send(zmq::buffer(greeting), zmq::send_flags::dontwait);
  std::size_t messages = 0;
  serve([] { return false; }, 0.5, [&](const auto&) { ++messages; });
  EXPECT_EQ(messages, 0U);
}

TEST_F(ConnectionTest, DamagedKeysAreNamed) {
  for (const std::string& keys : {std::string(), std::string("12"), head_->keys() + "00", std::string(192, 'g')}) {
    const auto connected = AgentConnection::connect(head_->addresses(), keys, greeting, 0.1);
    ASSERT_FALSE(connected);
    EXPECT_NE(connected.error().text.find("BESTRIDE_WATCH_KEY"), std::string::npos);
  }
}

TEST_F(ConnectionTest, AnAddressThatIsNoneIsAnError) {
  EXPECT_FALSE(AgentConnection::connect("nonsense", head_->keys(), greeting, 0.1));
}

TEST_F(ConnectionTest, AHeadOfAnotherVersionIsNotTaken) {
  const Attempt attempt = connect(head_->addresses(), head_->keys(), 10, message(MessageKind::end));
  EXPECT_FALSE(attempt.agent);
  EXPECT_NE(attempt.problem.find("another version"), std::string::npos);
}

}  // namespace
}  // namespace bestride::inline cli
