// SPDX-License-Identifier: Apache-2.0
#include "cli/hosts/head_link.hpp"

#include <algorithm>
#include <limits>
#include <random>

namespace bestride::inline cli {
namespace {

// Seconds.
constexpr double attempt_patience = 3;  ///< for the answer to a new connection; the present one is used meanwhile
constexpr double beat_period = 1;
constexpr double relay_patience = 2.5;  ///< less than the head waits before it reports a host as unreachable
constexpr double busy_patience = 12;    ///< while a relay takes stacks
constexpr double attempt_period = 5;    ///< between attempts to reach the head itself

std::uint64_t random_number() {
  std::random_device device;
  return std::uint64_t{device()} << 32 | device();
}

}  // namespace

Result<HeadLink> HeadLink::connect(const std::string& addresses, const std::string& keys, Hello hello, double seconds,
                                   double now) {
  hello.agent = random_number();
  auto connection = AgentConnection::connect(addresses, keys, message(hello), seconds);
  if (!connection) return connection.error();
  return HeadLink(addresses, keys, std::move(hello), std::move(*connection), now);
}

std::vector<int> HeadLink::descriptors() const {
  std::vector<int> result = connection_.descriptors();
  const auto add = [&](const std::vector<int>& more) { result.insert(result.end(), more.begin(), more.end()); };
  if (attempt_) add(attempt_->connection.descriptors());
  if (relay_) add(relay_->descriptors());
  return result;
}

double HeadLink::next_work() const {
  double next = std::numeric_limits<double>::infinity();
  if (attempt_) next = attempt_->begun + attempt_patience;
  if (relay_) next = std::min({next, relay_->due(), beat_ + beat_period});
  return next;
}

void HeadLink::try_connection(const std::string& addresses, const std::string& keys, bool to_relay, double now) {
  auto begun = AgentConnection::begin(addresses, keys, message(hello_));
  if (begun) attempt_.emplace(Attempt{std::move(*begun), to_relay, now});
}

void HeadLink::follow(double now) {
  const bool relay_is_lost =
      relayed_ && now - heard_ > relay_patience && now > patience_until_ && now - attempted_ > attempt_period;
  if (relay_is_lost && !attempt_) {
    attempted_ = now;
    try_connection(addresses_, keys_, false, now);
  }
  if (!attempt_) return;
  const AgentConnection::Answer answer = attempt_->connection.answer();
  if (answer == AgentConnection::Answer::welcome) {
    connection_ = std::move(attempt_->connection);
    relayed_ = attempt_->to_relay;
    heard_ = now;
    ++connections_;
  } else if (answer == AgentConnection::Answer::none && now - attempt_->begun < attempt_patience) {
    return;
  }
  attempt_.reset();
}

void HeadLink::begin_relay() {
  if (relay_) return;
  auto opened = Relay::open(keys_);
  if (!opened) return;  // the head asks another agent
  relay_.emplace(std::move(*opened));
  connection_.send(message(MessageKind::relay_ready, relay_->address()));
}

void HeadLink::serve_relay(double now) {
  if (!relay_) return;
  if (now - beat_ >= beat_period && now - heard_ < head_patience) {
    beat_ = now;
    relay_->send_all(message(MessageKind::welcome));
  }
  relay_->receive(now);
  if (const auto bundle = relay_->take_bundle(now)) connection_.send(*bundle);
}

std::optional<std::string> HeadLink::receive(double now) {
  for (;;) {
    follow(now);
    serve_relay(now);
    auto received = connection_.receive();
    if (!received) return std::nullopt;
    heard_ = now;
    const auto kind = kind_of(*received);
    if (!kind) continue;
    switch (*kind) {
      case MessageKind::relay: begin_relay(); break;
      case MessageKind::repeat_hello:
        ++connections_;
        connection_.send(message(hello_));
        break;
      case MessageKind::redirect:
        if (const auto to = read_relay_address(*received))
          try_connection(to->addresses, Listener::keys_with(to->key, keys_), true, now);
        break;
      case MessageKind::take_stacks: patience_until_ = now + busy_patience; [[fallthrough]];
      case MessageKind::look:
      case MessageKind::kill_ranks:
      case MessageKind::end:
        if (relay_) relay_->send_all(*received);
        return received;
      case MessageKind::welcome: patience_until_ = 0; break;
      default: break;
    }
  }
}

void HeadLink::send(const std::string& bytes, double now) {
  if (!relays(now)) return connection_.send(bytes);
  relay_->add(hello_.agent, bytes, now);
  if (kind_of(bytes) == MessageKind::pulse) relay_->hurry(now);
  if (const auto bundle = relay_->take_bundle(now)) connection_.send(*bundle);
}

}  // namespace bestride::inline cli
