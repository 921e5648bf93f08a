// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/agents.hpp"

#include <algorithm>

#include "cli/job/rank_list.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

/// Pulses come once a second.
constexpr double patience = 3, patience_before_news = 5;
/// A busy agent answers late.
constexpr double patience_for_answer = 10;
/// Most by which the clocks of two hosts drift apart, seconds per second.
constexpr double clock_drift = 1e-4;
/// Finished calls that are asked for in one look, of all ranks together, and if all are wanted. One takes about 25
/// bytes in a message and 72 in memory.
constexpr std::uint32_t routine_calls = 1 << 16, most_calls = 1 << 20, least_calls = 16;

}  // namespace

Agents::Agents() {
  auto opened = HeadConnection::open();
  if (opened)
    connection_.emplace(std::move(*opened));
  else
    problem_ = opened.error().text;
}

std::vector<int> Agents::descriptors() const { return connection_ ? connection_->descriptors() : std::vector<int>{}; }

bool Agents::receive(double seconds) {
  bool changed = false;
  while (connection_) {
    const auto received = connection_->receive();
    if (!received) break;
    changed = handle(received->agent, received->bytes, seconds) || changed;
  }
  return changed;
}

bool Agents::handle(const std::string& agent, const std::string& bytes, double seconds) {
  const auto kind = kind_of(bytes);
  if (!kind) return false;
  if (*kind == MessageKind::hello) {
    const auto hello = read_hello(bytes);
    if (!hello) return false;
    if (hello->version != BESTRIDE_VERSION) {
      other_versions_.push_back(hello->host);
      connection_->send(agent, message(MessageKind::end));
      return false;
    }
    Host& host = hosts_[agent];
    host.hello = *hello;
    host.heard = seconds;
    connection_->send(agent, message(MessageKind::welcome));
    return true;
  }
  const auto known = hosts_.find(agent);
  if (known == hosts_.end()) return false;
  Host& host = known->second;
  host.heard = seconds;
  switch (*kind) {
    case MessageKind::pulse:
      if (const auto pulse = read_pulse(bytes)) {
        host.pulse = *pulse;
        return pulse->ended;
      }
      break;
    case MessageKind::ranks:
      if (auto ranks = read_ranks(bytes, host.ranks)) {
        host.asked = ranks->look == looks_ ? 0 : asked_;
        set_clock(host, ranks->now, seconds);
        for (RankSnapshot& rank : ranks->ranks) {
          rank.remote = true;
          if (rank.ended > 0) rank.ended = std::max(rank.ended + host.clock_offset, 1e-3);
        }
        host.ranks = std::move(ranks->ranks);
      }
      break;
    case MessageKind::stacks: host.stacks = read_stacks(bytes); break;
    default: break;
  }
  return false;
}

/// An answer is late by what it takes to send and read it, so the least difference is the best.
void Agents::set_clock(Host& host, double there, double here) {
  if (here - there > host.clock_offset + clock_drift * (here - host.clock_measured)) return;
  host.clock_offset = here - there;
  host.clock_measured = here;
}

bool Agents::suspects() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.second.pulse.suspects; });
}

void Agents::send_all(const std::string& bytes) {
  for (const auto& [agent, host] : hosts_) connection_->send(agent, bytes);
}

void Agents::look(bool all, double seconds) {
  ++looks_;
  asked_ = seconds;
  std::uint32_t ranks = 1;
  for (const auto& [agent, host] : hosts_) ranks += host.pulse.ranks;
  const std::uint32_t calls = std::clamp((all ? most_calls : routine_calls) / ranks, least_calls, main_ring_size);
  for (auto& [agent, host] : hosts_) {
    if (host.asked == 0) host.asked = seconds;
    const bool full = all || host.ranks.empty();
    connection_->send(agent, message(Look{looks_, full ? SnapshotDetail::full : SnapshotDetail::state, calls}));
  }
}

bool Agents::all_answered(double seconds) const {
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
    return host.second.asked == 0 || seconds - std::min(host.second.heard, host.second.asked) > patience;
  });
}

std::vector<RankSnapshot> Agents::ranks_of(const std::string& launch, double seconds) const {
  std::vector<RankSnapshot> result;
  for (const auto& [agent, host] : hosts_) {
    if (host.hello.launch != launch) continue;
    double unheard = seconds - host.heard > patience ? seconds - host.heard : 0;
    if (host.asked > 0) unheard = std::max({unheard, seconds - host.asked, 1e-3});
    for (RankSnapshot rank : host.ranks) {
      rank.unheard = unheard;
      result.push_back(std::move(rank));
    }
  }
  return result;
}

void Agents::ask_for_stacks(double seconds) {
  for (auto& [agent, host] : hosts_) {
    host.stacks.reset();
    host.stacks_expected = seconds - host.heard <= patience;
  }
  send_all(message(MessageKind::take_stacks));
}

bool Agents::all_stacks_came() const {
  return std::all_of(hosts_.begin(), hosts_.end(),
                     [](const auto& host) { return host.second.stacks || !host.second.stacks_expected; });
}

std::vector<HostStacks> Agents::take_stacks(const std::string& launch) {
  std::vector<HostStacks> result;
  for (auto& [agent, host] : hosts_) {
    if (host.hello.launch != launch) continue;
    if (host.stacks) {
      result.push_back(std::move(*host.stacks));
      host.stacks.reset();
      continue;
    }
    HostStacks missing;
    for (const RankSnapshot& rank : host.ranks)
      if (rank.alive) missing.failures.push_back({rank.world_rank, rank.pid, 0, "no answer from " + host.hello.host});
    result.push_back(std::move(missing));
  }
  return result;
}

void Agents::end(const std::string& launch) {
  std::erase_if(hosts_, [&](const auto& entry) {
    if (entry.second.hello.launch != launch) return false;
    connection_->send(entry.first, message(MessageKind::end));
    return true;
  });
}

std::vector<std::string> Agents::news(double seconds) {
  std::vector<std::string> lines;
  for (const std::string& host : other_versions_)
    lines.push_back("the ranks on " + host +
                    " are not watched: bestride has another version there than " BESTRIDE_VERSION);
  other_versions_.clear();
  for (auto& [agent, host] : hosts_) {
    const bool alive = host.ranks.empty() || std::any_of(host.ranks.begin(), host.ranks.end(),
                                                         [](const RankSnapshot& rank) { return rank.alive; });
    const double unheard = seconds - host.heard, unanswered = host.asked > 0 ? seconds - host.asked : 0;
    const bool silent = alive && (unheard > patience_before_news || unanswered > patience_for_answer);
    if (silent == host.silent) continue;
    host.silent = silent;
    std::vector<std::int32_t> ranks;
    for (const RankSnapshot& rank : host.ranks) ranks.push_back(rank.world_rank);
    std::sort(ranks.begin(), ranks.end());
    lines.push_back(silent ? "the agent on " + host.hello.host + " has not answered for " +
                                 seconds_text(std::max(unheard, unanswered)) + ": " +
                                 (ranks.empty() ? "its ranks" : ranks_text(ranks)) +
                                 (ranks.size() == 1 ? " is" : " are") + " not watched now"
                           : "the agent on " + host.hello.host + " answers again");
  }
  return lines;
}

}  // namespace bestride::inline cli
