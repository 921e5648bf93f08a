// SPDX-License-Identifier: Apache-2.0
#pragma once
// Relay: the agents that are connected to the head through this one. Their messages are bundled, so that the head gets
// one or two messages a second from all of them together.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cli/hosts/connection.hpp"
#include "cli/hosts/messages.hpp"

namespace bestride::inline cli {

/// Not thread-safe. Times: seconds of one clock.
class Relay {
 public:
  /// `keys`: of the head's agents. Error: can't listen.
  static Result<Relay> open(const std::string& keys);

  RelayAddress address() const { return {listener_.addresses(), listener_.own_key()}; }
  std::vector<int> descriptors() const { return listener_.descriptors(); }

  /// Takes the messages of the agents. Must be called like Listener::receive().
  void receive(double now);
  /// Adds a message to the bundle: a pulse without news waits for the next bundle, everything else for 10 ms.
  void add(std::uint64_t agent, const std::string& bytes, double now);
  /// Makes the bundle due now.
  void hurry(double now) { due_ = now; }
  /// The bundle, if it is time to send it.
  std::optional<std::string> take_bundle(double now);
  double due() const noexcept { return due_; }

  void send_all(const std::string& bytes);
  /// Agents that were heard in the last seconds.
  std::size_t agents(double now) const;

 private:
  explicit Relay(Listener listener) : listener_(std::move(listener)) {}
  struct Agent {
    std::uint64_t number = 0;
    double heard = 0;
  };

  Listener listener_;
  std::unordered_map<std::string, Agent> agents_;  ///< by connection
  std::vector<Bundled> bundle_;
  std::size_t bundled_bytes_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> pulses_;  ///< the element of bundle_ with an agent's pulse
  std::unordered_map<std::uint64_t, bool> suspects_;       ///< of its last pulse
  double due_ = std::numeric_limits<double>::infinity();   ///< of the bundle; infinite: there is nothing to send
};

}  // namespace bestride::inline cli
