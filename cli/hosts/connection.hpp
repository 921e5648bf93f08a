// SPDX-License-Identifier: Apache-2.0
#pragma once
// The connections between the head (the process that watches a job) and its agents: ZeroMQ with CURVE.
//
// The head makes two key pairs for each job: its own, and one that all agents have. The ranks get its public key and
// the agents' keys through their environment, which other users can't read. The head accepts no other key (ZAP, RFC
// 27), and an agent believes no other head; all content is encrypted. A lost connection is made again by the library.
// Not thread-safe. Without ZeroMQ at build time, open() and connect() say so.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace bestride::inline cli {

class HeadConnection {
 public:
  /// Listens on a free port of all addresses of this host.
  static Result<HeadConnection> open();
  HeadConnection(HeadConnection&&) noexcept;
  ~HeadConnection();

  /// For the ranks: BESTRIDE_WATCH, "tcp://10.0.0.1:4711,tcp://..." with all addresses except those of the loopback
  /// device, and BESTRIDE_WATCH_KEY.
  const std::string& addresses() const noexcept;
  const std::string& keys() const noexcept;

  /// Becomes readable when something may have arrived. Before each poll(), and after the last send() before it,
  /// receive() has to be called until it is empty: send() may take the notice of a message that has arrived.
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
  explicit HeadConnection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class AgentConnection {
 public:
  /// To one of `addresses`: the first whose head answers `hello` within `seconds`. Error: none does, or bad keys.
  static Result<AgentConnection> connect(const std::string& addresses, const std::string& keys,
                                         const std::string& hello, double seconds);
  AgentConnection(AgentConnection&&) noexcept;
  ~AgentConnection();

  int descriptor() const;  ///< as HeadConnection::descriptors()
  std::optional<std::string> receive();
  void send(const std::string& bytes);

 private:
  struct State;
  explicit AgentConnection(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bestride::inline cli
