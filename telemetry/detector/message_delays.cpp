// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/message_delays.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "base/median.hpp"
#include "telemetry/waits/matched_messages.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr std::uint32_t surely_synchronous = 64 * 1024;  ///< bytes
constexpr double negligible = 1e-6;                      ///< seconds between the post and the call that waits
constexpr double usual_rounds = 3;                       ///< times a usual delay
constexpr std::size_t least_of_pair = 2;                 ///< messages

/// One end of a message. Times are seconds of the host's clock.
struct MessageEvent {
  std::uint16_t together = 1;
  std::uint64_t end_ticks = 0;
  double posted = 0, waited = 0, completed = 0;
};

struct TimedMessage {
  std::int32_t from = -1, to = -1;
  std::uint32_t bytes = 0, from_host = 0, to_host = 0;
  MessageEvent sent, received;
  double bound = -1, exact_bound = -1;  ///< seconds; below 0: not known
};

/// A message at one of its ends, to be grouped by the call that completed it there.
struct CompletedThere {
  std::int32_t rank = -1;
  std::uint64_t end_ticks = 0;
  std::uint32_t message = 0;
  bool received = false;

  auto call() const noexcept { return std::tie(rank, end_ticks); }
};

class DelayMeter {
 public:
  explicit DelayMeter(std::span<const RankSnapshot> ranks) : members_(ranks) {}

  std::vector<MessageDelay> measure(const std::map<std::int32_t, std::uint64_t>& after) {
    for (const auto& [number, rank] : members_.ranks()) add_clock(*rank);
    const auto is_new = [&](const RankSnapshot& rank, const MessageSnapshot& message) {
      const auto from = after.find(rank.world_rank);
      return from == after.end() || message.completed > from->second;
    };
    for (const MatchedMessage& each : matched_messages(members_))
      if (is_new(*each.sender, *each.sent) && is_new(*each.receiver, *each.received))
        matched_.push_back({each.sender->world_rank, each.receiver->world_rank, each.sent->bytes, host_of(*each.sender),
                            host_of(*each.receiver), event(*each.sender, *each.sent),
                            event(*each.receiver, *each.received)});
    find_offsets();
    // First with delays that hardly depend on the offsets.
    bound_by_waits();
    bound_by_calls();
    find_usual_delays();
    bound_by_waits();
    bound_by_calls();
    std::vector<MessageDelay> result;
    for (const TimedMessage& each : matched_)
      if (each.bound >= 0)
        result.push_back(
            {each.from, each.to, each.bytes, each.bound, each.exact_bound >= 0 && each.bound >= each.exact_bound / 2});
    return result;
  }

 private:
  void add_clock(const RankSnapshot& rank) {
    if (hosts_.try_emplace(rank.host, static_cast<std::uint32_t>(hosts_.size())).second) clocks_.push_back(&rank);
  }
  std::uint32_t host_of(const RankSnapshot& rank) const { return hosts_.at(rank.host); }
  MessageEvent event(const RankSnapshot& rank, const MessageSnapshot& message) const {
    const RankSnapshot& clock = *clocks_[host_of(rank)];
    const auto seconds = [&](std::uint64_t ticks) {
      return static_cast<double>(static_cast<std::int64_t>(ticks - clock.anchor_ticks)) / clock.ticks_per_second;
    };
    return {message.together, message.completed, seconds(message.posted), seconds(message.waited),
            seconds(message.completed)};
  }

  /// Least time from a post to the end on the other host, each by its own clock.
  void find_offsets() {
    for (const TimedMessage& each : matched_) {
      if (each.from_host == each.to_host) continue;
      const auto [at, is_new] = least_.try_emplace({each.from_host, each.to_host}, 0);
      const double seconds = each.received.completed - each.sent.posted;
      at->second = is_new ? seconds : std::min(at->second, seconds);
    }
  }
  /// Medians of the delays that hardly depend on an offset: over all pairs of hosts, and of each pair.
  void find_usual_delays() {
    std::vector<double> all;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<double>> of_pair;
    for (TimedMessage& each : matched_) {
      if (each.from_host != each.to_host && each.bound >= 0) {
        all.push_back(each.bound);
        if (each.exact_bound >= 0) of_pair[std::minmax(each.from_host, each.to_host)].push_back(each.exact_bound);
      }
      each.bound = each.exact_bound = -1;
    }
    usual_delay_ = median_of(std::move(all));
    for (auto& [hosts, delays] : of_pair)
      if (delays.size() >= least_of_pair) usual_of_pair_[hosts] = median_of(std::move(delays));
  }
  struct Offset {
    double seconds = 0;  ///< to add to times of one host to get those of the other
    double error = 0;
  };
  /// Empty: not known.
  std::optional<Offset> offset(std::uint32_t from, std::uint32_t to) const {
    if (from == to) return Offset{};
    const auto there = least_.find({from, to}), back = least_.find({to, from});
    if (there == least_.end() || back == least_.end()) return std::nullopt;
    const double round = there->second + back->second;
    // If a pair takes long, one of its ranks may always be late, which hides its offset, unless its messages are known
    // to be slow.
    const auto own = usual_of_pair_.find(std::minmax(from, to));
    const double usual = std::max(usual_delay_, own == usual_of_pair_.end() ? 0 : own->second);
    return Offset{(there->second - back->second) / 2, round <= usual_rounds * usual ? 0 : round / 2};
  }

  /// If a synchronous message is alone in both of its calls, the later call waits for the transfer only, so the shorter
  /// wait is the delay, independent of the clocks.
  void bound_by_waits() {
    for (TimedMessage& each : matched_) {
      const MessageEvent &s = each.sent, &r = each.received;
      if (each.from_host == each.to_host || s.together != 1 || r.together != 1 || each.bytes < surely_synchronous)
        continue;
      const double seconds = std::min(s.completed - s.waited, r.completed - r.waited);
      if (std::max(s.waited - s.posted, r.waited - r.posted) <= std::max(seconds / 4, negligible))
        each.bound = each.exact_bound = seconds;
    }
  }

  void bound_by_calls() {
    std::vector<CompletedThere> ends;
    for (std::uint32_t i = 0; i < matched_.size(); ++i) {
      ends.push_back({matched_[i].to, matched_[i].received.end_ticks, i, true});
      ends.push_back({matched_[i].from, matched_[i].sent.end_ticks, i, false});
    }
    std::sort(ends.begin(), ends.end(),
              [](const CompletedThere& a, const CompletedThere& b) { return a.call() < b.call(); });
    for (std::size_t i = 0; i < ends.size();) {
      std::size_t last = i;
      while (last < ends.size() && ends[last].call() == ends[i].call()) ++last;
      bound_by_call({ends.begin() + static_cast<std::ptrdiff_t>(i), ends.begin() + static_cast<std::ptrdiff_t>(last)});
      i = last;
    }
  }

  /// `call`: the messages that one call completed.
  void bound_by_call(std::span<const CompletedThere> call) {
    double posted = 0, earliest = 0, latest = 0, began = 0, end = 0;  // of this rank's clock
    bool first = true, one_pair = true, one_host = true;
    for (const CompletedThere& each : call) {
      const TimedMessage& message = matched_[each.message];
      const MessageEvent& own = each.received ? message.received : message.sent;
      const MessageEvent& other = each.received ? message.sent : message.received;
      if (own.together != call.size()) return;
      const auto clocks = offset(each.received ? message.from_host : message.to_host,
                                 each.received ? message.to_host : message.from_host);
      if (!clocks) return;
      const double shift = clocks->seconds, error = clocks->error;
      end = own.completed;
      const double post = std::max(own.posted, other.posted + shift);
      posted = first ? post : std::max(posted, post);
      earliest = std::max(first ? own.posted : earliest, std::max(own.posted, other.posted + shift - error));
      latest = std::max(first ? own.posted : latest, std::max(own.posted, other.posted + shift + error));
      began = first ? own.waited : std::max(began, own.waited);
      // The library of the other rank progresses a transfer only in MPI calls.
      if (other.waited + shift <= end) began = std::max(began, other.waited + shift);
      const TimedMessage& one = matched_[call.front().message];
      one_pair = one_pair && std::minmax(message.from, message.to) == std::minmax(one.from, one.to);
      one_host = one_host && message.from_host == message.to_host;
      first = false;
    }
    const double seconds = end - posted;
    if (latest - earliest > std::max(seconds / 4, negligible)) return;
    if (seconds < 0 || began > posted + std::max(seconds / 4, negligible)) return;
    for (const CompletedThere& each : call) {
      TimedMessage& message = matched_[each.message];
      // A message between hosts takes so much longer that the bound is useless for one within a host.
      if (!one_host && message.from_host == message.to_host) continue;
      if (!each.received && message.bytes < surely_synchronous) continue;
      if (message.bound < 0 || seconds < message.bound) message.bound = seconds;
      if (one_pair && (message.exact_bound < 0 || seconds < message.exact_bound)) message.exact_bound = seconds;
    }
  }

  const Members members_;
  std::map<std::string, std::uint32_t> hosts_;
  std::vector<const RankSnapshot*> clocks_;  ///< by host: the rank whose anchor and rate convert its ticks
  std::vector<TimedMessage> matched_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> least_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> usual_of_pair_;  ///< lower host first; seconds
  double usual_delay_ = 0;  ///< of messages between hosts; 0: not known yet
};

}  // namespace

std::vector<MessageDelay> message_delays(std::span<const RankSnapshot> ranks,
                                         const std::map<std::int32_t, std::uint64_t>& after) {
  return DelayMeter(ranks).measure(after);
}

}  // namespace bestride::inline telemetry
