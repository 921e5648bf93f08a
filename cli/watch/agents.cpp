// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/agents.hpp"

#include <algorithm>
#include <utility>

#include "cli/job/rank_list.hpp"
#include "telemetry/record/snapshot_code.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

/// Pulses come once a second.
constexpr double patience = 3, patience_before_news = 5;
/// A busy agent answers late.
constexpr double patience_for_answer = 10;
constexpr double balance_period = 0.1;
constexpr double redirect_period = 5;  ///< after which an agent that has not reached its relay is sent to another one
constexpr unsigned most_redirections = 3;
/// Largest clock drift between two hosts, seconds per second.
constexpr double clock_drift = 1e-4;
/// Finished calls that are asked for in one look, of all ranks together, and if all are wanted. One takes about 25
/// bytes in a message and 72 in memory.
constexpr std::uint32_t routine_calls = 1 << 16, most_calls = 1 << 20, least_calls = 16;

}  // namespace

Agents::Agents(std::size_t fan_out) : fan_out_(fan_out) {
  auto opened = Listener::open();
  if (opened)
    listener_.emplace(std::move(*opened));
  else
    problem_ = opened.error().text;
}

std::vector<int> Agents::descriptors() const { return listener_ ? listener_->descriptors() : std::vector<int>{}; }

bool Agents::receive(double seconds) {
  bool changed = false;
  while (listener_) {
    const auto received = listener_->receive();
    if (!received) {
      if (seconds - balanced_ < balance_period) break;
      balanced_ = seconds;
      balance(seconds);  // which sends
      continue;
    }
    ++messages_;
    changed = handle(received->agent, received->bytes, seconds) || changed;
  }
  return changed;
}

bool Agents::handle(const std::string& connection, const std::string& bytes, double seconds) {
  const auto kind = kind_of(bytes);
  if (kind == MessageKind::hello) {
    const auto hello = read_hello(bytes);
    return hello && handle_hello(connection, 0, *hello, seconds);
  }
  const auto agent = agents_.find(connection);
  if (agent == agents_.end()) {
    listener_->send(connection, message(MessageKind::repeat_hello));
    return false;
  }
  if (kind != MessageKind::bundle) return handle(agent->second, bytes, seconds);
  const auto bundle = read_bundle(bytes);
  if (!bundle) return false;
  const std::uint64_t relay = agent->second;
  bool changed = false;
  for (const Bundled& each : *bundle) {
    const auto hello = kind_of(each.bytes) == MessageKind::hello ? read_hello(each.bytes) : std::nullopt;
    if (!hello) set_route(each.agent, "", relay);
    changed = (hello ? handle_hello("", relay, *hello, seconds) : handle(each.agent, each.bytes, seconds)) || changed;
  }
  return changed;
}

/// `connection` is empty if the agent is connected through `relay`.
bool Agents::handle_hello(const std::string& connection, std::uint64_t relay, const Hello& hello, double seconds) {
  const bool same_version = hello.version == BESTRIDE_VERSION;
  if (!same_version) other_versions_.push_back(hello.host);
  const bool is_wanted = same_version && !ended_.contains(hello.launch);
  if (!connection.empty()) listener_->send(connection, message(is_wanted ? MessageKind::welcome : MessageKind::end));
  if (!is_wanted) return false;
  const auto [at, is_new] = hosts_.try_emplace(hello.agent);
  Host& host = at->second;
  host.hello = hello;
  host.heard = seconds;
  set_route(hello.agent, connection, relay);
  return is_new || host.asked > 0;  // what was asked or answered before may be lost
}

/// The last message decides, because an agent on its way to a relay may still send something here.
void Agents::set_route(std::uint64_t agent, const std::string& connection, std::uint64_t relay) {
  const auto known = hosts_.find(agent);
  if (known == hosts_.end() || agent == relay) return;  // a relay bundles its own messages, too
  Host& host = known->second;
  if (host.connection != connection) agents_.erase(host.connection);
  host.connection = connection;
  host.relay = relay;
  if (relay != 0) host.redirections = 0;
  if (!connection.empty()) agents_[connection] = agent;
}

bool Agents::handle(std::uint64_t agent, const std::string& bytes, double seconds) {
  const auto kind = kind_of(bytes);
  const auto known = hosts_.find(agent);
  if (!kind || known == hosts_.end()) return false;
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
      if (auto answer = read_ranks(bytes)) take_answer(host, std::move(*answer), seconds);
      break;
    case MessageKind::stacks: host.stacks = read_stacks(bytes); break;
    case MessageKind::relay_ready: host.as_relay = read_relay_address(bytes); break;
    default: break;
  }
  return false;
}

void Agents::take_answer(Host& host, HostRanks answer, double seconds) {
  host.asked = answer.look == looks_ ? 0 : asked_;
  set_clock(host, answer.now, seconds);
  std::vector<Host::Process> processes;
  for (RankSnapshot& rank : answer.ranks) {
    rank.remote = true;
    if (rank.ended > 0) rank.ended = std::max(rank.ended + host.clock_offset, 1e-3);
    const auto is_same = [&](const auto& known) { return known.pid == rank.pid && known.start == rank.process_start; };
    const auto before = std::find_if(host.processes.begin(), host.processes.end(), is_same);
    std::optional<std::size_t> sites = before != host.processes.end() ? before->sites : std::nullopt;
    if (!rank.partial) sites = rank.sites.size();
    processes.push_back(
        {rank.world_rank, rank.pid, rank.process_start, rank.alive, sites, sites && *sites >= rank.sites.size()});
    if (!rank.partial || !host.arrived) continue;
    // An earlier answer that nobody has taken yet may be the full one.
    const auto earlier = std::find_if(host.arrived->begin(), host.arrived->end(),
                                      [&](const RankSnapshot& other) { return same_process(other, rank); });
    if (earlier != host.arrived->end() && !earlier->partial) complete(rank, &*earlier);
  }
  host.processes = std::move(processes);
  host.arrived = std::move(answer.ranks);
}

void Agents::balance(double seconds) {
  if (agents_.size() <= fan_out_) return;
  std::map<std::string, std::vector<std::uint64_t>> launches;
  for (const auto& [agent, host] : hosts_) launches[host.hello.launch].push_back(agent);
  for (const auto& [launch, agents] : launches) balance(agents, seconds);
}

/// The agents of one launch.
void Agents::balance(const std::vector<std::uint64_t>& agents, double seconds) {
  std::vector<Host*> direct, relays;
  std::map<std::uint64_t, std::size_t> load;  // agents through a relay, and those that are on their way to one
  std::size_t heard = 0, redirected = 0, preparing = 0;
  for (const std::uint64_t agent : agents) {
    Host& host = hosts_[agent];
    if (seconds - host.heard > patience) continue;
    ++heard;
    if (host.relay != 0) ++load[host.relay];
    if (host.connection.empty()) continue;
    direct.push_back(&host);
    if (host.as_relay)
      relays.push_back(&host);
    else if (host.asked_to_relay > 0 && seconds - host.asked_to_relay < patience)
      ++preparing;
    if (host.redirected > 0 && seconds - host.redirected < redirect_period) ++redirected;
  }
  if (direct.size() <= fan_out_ + redirected) return;
  const std::size_t wanted = std::min(fan_out_, (heard + fan_out_ - 1) / fan_out_);
  for (Host* const host : direct) {
    if (relays.size() + preparing >= wanted) break;
    if (host->as_relay || host->asked_to_relay > 0) continue;
    host->asked_to_relay = seconds;
    listener_->send(host->connection, message(MessageKind::relay));
    ++preparing;
  }
  if (relays.size() < wanted && preparing > 0) return;  // so that all of them get the same number of agents
  std::size_t excess = direct.size() - fan_out_ - redirected;
  for (Host* const host : direct) {
    if (excess == 0 || relays.empty()) return;
    const bool is_redirected = host->redirected > 0 && seconds - host->redirected < redirect_period;
    if (host->as_relay || is_redirected || host->redirections >= most_redirections) continue;
    Host* const relay = *std::min_element(relays.begin(), relays.end(), [&](const Host* a, const Host* b) {
      return load[a->hello.agent] < load[b->hello.agent];
    });
    ++load[relay->hello.agent];
    host->redirected = seconds;
    ++host->redirections;
    listener_->send(host->connection, message(MessageKind::redirect, *relay->as_relay));
    --excess;
  }
}

/// Sending and reading delay an answer, so the least difference is the most accurate.
void Agents::set_clock(Host& host, double there, double here) {
  if (here - there > host.clock_offset + clock_drift * (here - host.clock_measured)) return;
  host.clock_offset = here - there;
  host.clock_measured = here;
}

bool Agents::suspects() const {
  return std::any_of(hosts_.begin(), hosts_.end(), [](const auto& host) { return host.second.pulse.suspects; });
}

/// Relays pass it on.
void Agents::send_all(const std::string& bytes) {
  for (const auto& [connection, agent] : agents_) listener_->send(connection, bytes);
}

void Agents::look(bool all, double seconds) {
  ++looks_;
  asked_ = seconds;
  std::uint32_t ranks = 1;
  for (auto& [agent, host] : hosts_) {
    ranks += host.pulse.ranks;
    if (host.asked == 0) host.asked = seconds;
    all = all || std::any_of(host.processes.begin(), host.processes.end(),
                             [](const Host::Process& process) { return process.alive && !process.complete; });
  }
  const std::uint32_t calls = std::clamp((all ? most_calls : routine_calls) / ranks, least_calls, main_ring_size);
  send_all(message(Look{looks_, all, calls}));
}

bool Agents::all_answered(double seconds) const {
  return std::all_of(hosts_.begin(), hosts_.end(), [&](const auto& host) {
    return host.second.asked == 0 || seconds - std::min(host.second.heard, host.second.asked) > patience;
  });
}

std::vector<HostUpdate> Agents::updates(const std::string& launch, double seconds) {
  std::vector<HostUpdate> result;
  for (auto& [agent, host] : hosts_) {
    if (host.hello.launch != launch) continue;
    double unheard = seconds - host.heard > patience ? seconds - host.heard : 0;
    if (host.asked > 0) unheard = std::max({unheard, seconds - host.asked, 1e-3});
    result.push_back({host.hello.host, unheard, std::exchange(host.arrived, std::nullopt)});
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
    for (const Host::Process& process : host.processes)
      if (process.alive)
        missing.failures.push_back({process.rank, process.pid, 0, "no answer from " + host.hello.host});
    result.push_back(std::move(missing));
  }
  return result;
}

void Agents::end(const std::string& launch) {
  ended_.insert(launch);
  std::erase_if(hosts_, [&](const auto& entry) {
    const Host& host = entry.second;
    if (host.hello.launch != launch) return false;
    if (!host.connection.empty()) listener_->send(host.connection, message(MessageKind::end));
    agents_.erase(host.connection);
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
    const bool alive = host.processes.empty() || std::any_of(host.processes.begin(), host.processes.end(),
                                                             [](const auto& process) { return process.alive; });
    const double unheard = seconds - host.heard, unanswered = host.asked > 0 ? seconds - host.asked : 0;
    const bool silent = alive && (unheard > patience_before_news || unanswered > patience_for_answer);
    if (silent == host.silent) continue;
    host.silent = silent;
    std::vector<std::int32_t> ranks;
    for (const Host::Process& process : host.processes) ranks.push_back(process.rank);
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
