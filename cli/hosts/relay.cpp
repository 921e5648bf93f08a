// SPDX-License-Identifier: Apache-2.0
#include "cli/hosts/relay.hpp"

#include <algorithm>

namespace bestride::inline cli {
namespace {

// Seconds.
constexpr double longest_pulse_delay = 1;  ///< if this agent sends none of its own meanwhile
constexpr double answer_delay = 0.01;      ///< the answers of several agents come at nearly the same time
constexpr double patience = 10;            ///< an agent that sends nothing for so long is removed
constexpr double recently = 3;             ///< pulses come once a second
constexpr std::size_t most_bundled_bytes = 1 << 20;

}  // namespace

Result<Relay> Relay::open(const std::string& keys) {
  auto listener = Listener::open_with(keys);
  if (!listener) return listener.error();
  return Relay(std::move(*listener));
}

void Relay::receive(double now) {
  while (const auto received = listener_.receive()) {
    const auto kind = kind_of(received->bytes);
    if (!kind) continue;
    if (*kind == MessageKind::hello) {
      const auto hello = read_hello(received->bytes);
      // The command was replaced during the job; the head reports it when the agent connects there.
      const bool good = hello && hello->version == BESTRIDE_VERSION;
      listener_.send(received->agent, message(good ? MessageKind::welcome : MessageKind::end));
      if (!good) continue;
      agents_[received->agent].number = hello->agent;
      suspects_.erase(hello->agent);
    }
    const auto agent = agents_.find(received->agent);
    if (agent == agents_.end()) {
      listener_.send(received->agent, message(MessageKind::repeat_hello));
      continue;
    }
    agent->second.heard = now;
    add(agent->second.number, received->bytes, now);
  }
  std::erase_if(agents_, [&](const auto& agent) { return now - agent.second.heard > patience; });
}

void Relay::add(std::uint64_t agent, const std::string& bytes, double now) {
  const auto pulse = kind_of(bytes) == MessageKind::pulse ? read_pulse(bytes) : std::nullopt;
  if (!pulse) {
    bundle_.push_back({agent, bytes});
    bundled_bytes_ += bytes.size();
    due_ = bundled_bytes_ > most_bundled_bytes ? now : std::min(due_, now + answer_delay);
    return;
  }
  const auto [suspects, first] = suspects_.try_emplace(agent, false);
  const bool news = pulse->ended || suspects->second != pulse->suspects;
  suspects->second = pulse->suspects;
  due_ = std::min(due_, now + (news ? answer_delay : longest_pulse_delay));
  if (const auto waiting = pulses_.find(agent); waiting != pulses_.end()) {
    const auto before = read_pulse(bundle_[waiting->second].bytes);
    Pulse merged = *pulse;
    merged.ended = merged.ended || (before && before->ended);
    bundle_[waiting->second].bytes = message(merged);
    return;
  }
  pulses_[agent] = bundle_.size();
  bundle_.push_back({agent, bytes});
}

std::optional<std::string> Relay::take_bundle(double now) {
  if (now < due_) return std::nullopt;
  due_ = std::numeric_limits<double>::infinity();
  if (bundle_.empty()) return std::nullopt;
  std::string bytes = message(bundle_);
  bundle_.clear();
  pulses_.clear();
  bundled_bytes_ = 0;
  return bytes;
}

void Relay::send_all(const std::string& bytes) {
  for (const auto& [connection, agent] : agents_) listener_.send(connection, bytes);
}

std::size_t Relay::agents(double now) const {
  return static_cast<std::size_t>(std::count_if(
      agents_.begin(), agents_.end(), [&](const auto& agent) { return now - agent.second.heard < recently; }));
}

}  // namespace bestride::inline cli
