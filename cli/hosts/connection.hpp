// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections between the head (the process that watches a job) and its agents: ZeroMQ with CURVE.
//
// The head makes two key pairs for each job: its own, and one that all agents have. The ranks get its public key and
// the agents' keys through their environment, which other users can't read. The head accepts no other key (ZAP, RFC
// 27), and an agent accepts no other head; all content is encrypted. An agent that listens for others has its own key
// pair and accepts the agents' key. ZeroMQ reconnects a lost connection. Not thread-safe. Without ZeroMQ at build time,
// open() and begin() return an error.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bestride::inline cli {

class Listener {
 public:
  /// Listens on a free port of all addresses of this host. Makes new keys for agents.
  static Result<Listener> open();
  /// Opens a listener that uses the agents' keys in `keys`. The last messages are delivered after the object is
  /// destroyed.
  static Result<Listener> open_with(const std::string& keys);
  Listener(Listener&&) noexcept;
  ~Listener();

  /// What agents connect to: "tcp://10.0.0.1:4711,tcp://..." with all addresses except those of the loopback device
  /// (BESTRIDE_WATCH), and the keys (BESTRIDE_WATCH_KEY).
  const std::string& addresses() const noexcept;
  const std::string& keys() const noexcept;
  /// The part of the keys that other listeners of the job do not have: its public key.
  std::string own_key() const;
  /// `keys` of another listener of the job with that part.
  static std::string keys_with(const std::string& own_key, const std::string& keys);

  /// Becomes readable when something may have arrived. Before each poll(), and after the last send() before it,
  /// receive() has to be called until it is empty: send() may consume the notification of a message that has arrived.
  std::vector<int> descriptors() const;
  struct Received {
    std::string agent;  ///< names the connection
    std::string bytes;
  };
  std::optional<Received> receive();
  /// Drops the message if the agent is gone, or does not read.
  void send(const std::string& agent, const std::string& bytes);

 private:
  struct State;
  explicit Listener(std::unique_ptr<State> state);
  static Result<Listener> open(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class AgentConnection {
 public:
  /// Connects to `addresses`, all of one listener, and sends `hello`. Does not wait. Error: bad keys or addresses.
  static Result<AgentConnection> begin(const std::string& addresses, const std::string& keys, const std::string& hello);
  /// Waits for the answer. Error: there is none within `seconds`, or it is a refusal.
  static Result<AgentConnection> connect(const std::string& addresses, const std::string& keys,
                                         const std::string& hello, double seconds);
  AgentConnection(AgentConnection&&) noexcept;
  AgentConnection& operator=(AgentConnection&&) noexcept;
  ~AgentConnection();

  enum class Answer { none, welcome, refused };
  /// The address that answers first is taken.
  Answer answer();

  std::vector<int> descriptors() const;  ///< as Listener::descriptors(), also before the answer
  /// The next message, if there is one. Call only after the answer to the greeting.
  std::optional<std::string> receive();
  void send(const std::string& bytes);

 private:
  struct State;
  explicit AgentConnection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bestride::inline cli
