// SPDX-License-Identifier: Apache-2.0
#pragma once
// HeadLink: an agent's connection to the head, directly or through a relay, and directly again if the relay fails. If
// the head asks for it, this agent is a relay for others.
#include <optional>
#include <string>
#include <vector>

#include "cli/hosts/connection.hpp"
#include "cli/hosts/messages.hpp"
#include "cli/hosts/relay.hpp"

namespace bestride::inline cli {

/// Seconds without a message after which the head is considered gone: it asks for snapshots at least every 10 s.
inline constexpr double head_patience = 12;

/// Not thread-safe. Times: seconds of one clock.
class HeadLink {
 public:
  /// Connects to the head and waits for its answer. `addresses`, `keys`: BESTRIDE_WATCH, BESTRIDE_WATCH_KEY. Sets
  /// hello.agent.
  static Result<HeadLink> connect(const std::string& addresses, const std::string& keys, Hello hello, double seconds,
                                  double now);

  /// The descriptors to poll before receive(); see Listener::descriptors().
  std::vector<int> descriptors() const;
  /// receive() has to be called by then, too.
  double next_work() const;
  /// The next message of the head for this agent: look, take_stacks, kill_ranks or end. They are already forwarded.
  std::optional<std::string> receive(double now);
  void send(const std::string& bytes, double now);

  /// When the head, or the relay, was last heard.
  double heard() const noexcept { return heard_; }
  /// Other agents depend on this one.
  bool relays(double now) const { return relay_ && relay_->agents(now) > 0; }
  /// Through a relay.
  bool relayed() const noexcept { return relayed_; }
  /// Connections that were made, the first one included: what was sent before the last one may be lost.
  unsigned connections() const noexcept { return connections_; }

 private:
  HeadLink(std::string addresses, std::string keys, Hello hello, AgentConnection connection, double now)
      : addresses_(std::move(addresses)),
        keys_(std::move(keys)),
        hello_(std::move(hello)),
        connection_(std::move(connection)),
        heard_(now) {}
  void try_connection(const std::string& addresses, const std::string& keys, bool to_relay, double now);
  void follow(double now);
  void serve_relay(double now);
  void begin_relay();

  /// A connection that may replace the present one when it is answered.
  struct Attempt {
    AgentConnection connection;
    bool to_relay;
    double begun;
  };

  std::string addresses_, keys_;
  Hello hello_;
  AgentConnection connection_;
  bool relayed_ = false;
  double heard_;
  double patience_until_ = 0;  ///< a relay may be busy until then
  double attempted_ = 0;       ///< when the head itself was last tried
  unsigned connections_ = 1;
  std::optional<Attempt> attempt_;
  std::optional<Relay> relay_;
  double beat_ = 0;  ///< when the agents of this relay were last told that it hears the head
};

}  // namespace bestride::inline cli
