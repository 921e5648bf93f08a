// SPDX-License-Identifier: Apache-2.0
#include "telemetry/mpi_time/job_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <tuple>

#include "telemetry/waits/members.hpp"

namespace bestride::inline telemetry {
namespace {

/// The same place in all ranks: the module by its build id, or by its path if it has none.
using SiteKey = std::tuple<std::string, std::uint64_t, std::uint16_t>;

SiteKey key_of(const RankSnapshot& rank, const SiteSnapshot& site) {
  std::string module;
  if (site.module < rank.modules.size()) {
    const ModuleSnapshot& found = rank.modules[site.module];
    module = found.build_id.empty() ? found.path : std::string(found.build_id.begin(), found.build_id.end());
  }
  return {module, site.address, site.function};
}

std::uint64_t timed_calls(const SiteSnapshot& site) {
  return std::accumulate(site.histogram.begin(), site.histogram.end(), std::uint64_t{0});
}

double measured_seconds(const SiteSnapshot& site, double ticks_per_second) {
  return ticks_per_second > 0 && timed_calls(site) > 0 ? static_cast<double>(site.ticks) / ticks_per_second : 0;
}

/// Of the calls that were not timed, as if they had taken as long as the others.
double assumed_seconds(const SiteSnapshot& site, double ticks_per_second) {
  const std::uint64_t timed = timed_calls(site);
  // Concurrent increments by several threads may be lost, so a site may have more timed calls than calls.
  if (timed == 0 || site.calls <= timed) return 0;
  return measured_seconds(site, ticks_per_second) * (static_cast<double>(site.calls) / static_cast<double>(timed) - 1);
}

/// By what the assumed times of a rank have to be multiplied, so that its threads are in MPI for no longer than they
/// can be: a timed call that waited for a processor stands for many that did not.
/// `in_calls`: seconds of those that have not returned.
double assumption_factor(const RankSnapshot& rank, double seconds, double in_calls) {
  double measured = in_calls, assumed = 0;
  for (const SiteSnapshot& site : rank.sites) {
    measured += measured_seconds(site, rank.ticks_per_second);
    assumed += assumed_seconds(site, rank.ticks_per_second);
  }
  const auto threads = std::count_if(rank.threads.begin(), rank.threads.end(),
                                     [](const ThreadSnapshot& thread) { return thread.calls > 0; });
  const double most = seconds * static_cast<double>(std::max<std::ptrdiff_t>(threads, 1));
  return assumed <= 0 || measured + assumed <= most ? 1 : std::max(0.0, most - measured) / assumed;
}

/// A place over all ranks while they are added up.
struct SiteSum {
  SiteTime time;
  std::map<std::int32_t, double> seconds;  ///< by rank
};

class Sums {
 public:
  Sums(std::span<const RankSnapshot> job, double observer_began)
      : job_(job), observer_began_(observer_began), members_(job) {}

  JobTime run() {
    double begin = std::numeric_limits<double>::infinity(), end = -begin;
    for (const auto& [number, rank] : members_.ranks()) {
      result_.size = std::max(result_.size, rank->world_size);
      const double began = realtime_of(*rank, rank->anchor_ticks), ended = end_of(*rank);
      begin = std::min(begin, began);
      end = std::max(end, ended);
      add(*rank, ended, ended - began);
    }
    if (!result_.ranks.empty()) result_.seconds = end - begin;
    finish_sites();
    result_.collective_wait = measure_collective_wait(job_);
    return std::move(result_);
  }

 private:
  /// Never before the last event of the record.
  double end_of(const RankSnapshot& rank) const {
    std::uint64_t last = rank.anchor_ticks;
    for (const ThreadSnapshot& thread : rank.threads) {
      last = std::max(last, thread.last_left);
      if (thread.current) last = std::max(last, thread.current->entered);
    }
    const double last_event = realtime_of(rank, last);
    if (rank.state == ProcessState::finalized) return last_event;
    if (rank.alive) return std::max(last_event, realtime_of(rank, rank.read_at));
    return rank.ended > 0 ? std::max(last_event, observer_began_ + rank.ended) : last_event;
  }

  void add(const RankSnapshot& rank, double ended, double seconds) {
    RankTime time;
    time.snapshot = static_cast<std::size_t>(&rank - job_.data());
    time.rank = rank.world_rank;
    time.seconds = seconds;
    time.incomplete = rank.state != ProcessState::finalized;
    double in_calls = 0;
    for (const ThreadSnapshot& thread : rank.threads)
      if (thread.current) in_calls += seconds_in(rank, *thread.current, ended);
    const double factor = assumption_factor(rank, seconds, in_calls);
    for (std::uint32_t i = 0; i < rank.sites.size(); ++i) {
      const SiteSnapshot& site = rank.sites[i];
      CallSums sums{site.calls, std::min(timed_calls(site), site.calls), site.bytes, 0};
      sums.seconds =
          measured_seconds(site, rank.ticks_per_second) + factor * assumed_seconds(site, rank.ticks_per_second);
      double longest = static_cast<double>(site.most_ticks) / rank.ticks_per_second;
      for (const ThreadSnapshot& thread : rank.threads)
        if (thread.current && thread.current->site == i) add_current(rank, *thread.current, ended, sums, longest);
      if (sums.calls > 0) add(rank, time.snapshot, i, sums, longest), time.mpi.add(sums);
    }
    for (const ThreadSnapshot& thread : rank.threads) time.polls += thread.polls;
    for (const PeerSnapshot& peer : rank.peers) add(rank, peer);
    result_.sites_dropped += rank.sites_dropped;
    result_.peers_dropped += rank.peers_dropped;
    result_.threads_dropped += rank.threads_dropped;
    result_.other_table = result_.other_table || !rank.functions_known;
    result_.mpi.add(time.mpi);
    result_.ranks.push_back(time);
  }

  static double seconds_in(const RankSnapshot& rank, const CallSnapshot& call, double ended) {
    return rank.state == ProcessState::finalized ? 0 : std::max(0.0, ended - realtime_of(rank, call.entered));
  }

  /// A call that did not return, as in a job that hung: known from its entry to the rank's end.
  static void add_current(const RankSnapshot& rank, const CallSnapshot& call, double ended, CallSums& sums,
                          double& longest) {
    if (rank.state == ProcessState::finalized) return;
    const double seconds = seconds_in(rank, call, ended);
    sums.add({1, 1, call.bytes, seconds});
    longest = std::max(longest, seconds);
  }

  void add(const RankSnapshot& rank, std::size_t snapshot, std::uint32_t index, const CallSums& sums, double longest) {
    const SiteSnapshot& site = rank.sites[index];
    SiteSum& sum = sites_[key_of(rank, site)];
    if (sum.time.site == no_index) {
      sum.time.site = index;
      sum.time.snapshot = snapshot;
      sum.time.function = site.function;
    }
    sum.time.sums.add(sums);
    sum.time.saved_seconds += site.saved_seconds;
    sum.time.served |= site.served;
    sum.time.most_seconds = std::max(sum.time.most_seconds, longest);
    sum.seconds[rank.world_rank] += sums.seconds;
    for (std::size_t i = 0; i < histogram_size; ++i) sum.time.histogram[i] += site.histogram[i];
    functions_[site.function].add(sums);
    if (sums.timed == 0) result_.untimed += sums.calls;
  }

  void add(const RankSnapshot& rank, const PeerSnapshot& peer) {
    if (peer.sent_messages == 0) return;
    std::int32_t to = static_cast<std::int32_t>(peer.rank);
    if (peer.communicator != no_index) {
      const CommunicatorSnapshot* const communicator = rank.communicator(peer.communicator);
      to = communicator ? members_.world_rank(*communicator, to) : -1;
    }
    if (to < 0) {
      ++result_.foreign_peers;
      return;
    }
    // A rank may be named through several communicators.
    const auto [at, is_new] = pairs_.try_emplace({rank.world_rank, to}, result_.pairs.size());
    if (is_new) result_.pairs.push_back({rank.world_rank, to, 0, 0});
    result_.pairs[at->second].messages += peer.sent_messages;
    result_.pairs[at->second].bytes += peer.sent_bytes;
  }

  /// Ranks without such a call have spent 0 s in it.
  void spread(SiteSum& sum) const {
    const double ranks = static_cast<double>(result_.ranks.size());
    const double mean = sum.time.sums.seconds / ranks;
    double squares = 0;
    bool first = true;
    for (const RankTime& rank : result_.ranks) {
      const auto found = sum.seconds.find(rank.rank);
      const double seconds = found == sum.seconds.end() ? 0 : found->second;
      squares += (seconds - mean) * (seconds - mean);
      if (first || seconds < sum.time.least_total) sum.time.least_total = seconds, sum.time.least_rank = rank.rank;
      if (first || seconds > sum.time.most_total) sum.time.most_total = seconds, sum.time.most_rank = rank.rank;
      first = false;
    }
    sum.time.variation = mean > 0 ? std::sqrt(squares / ranks) / mean : 0;
    sum.time.ranks = sum.seconds.size();
  }

  void finish_sites() {
    const auto more_time = [](const auto& a, const auto& b) {
      return std::tuple(a.sums.seconds, a.sums.calls) > std::tuple(b.sums.seconds, b.sums.calls);
    };
    for (auto& [key, sum] : sites_) {
      spread(sum);
      result_.sites.push_back(sum.time);
    }
    for (const auto& [function, sums] : functions_) result_.functions.push_back({function, sums});
    std::stable_sort(result_.sites.begin(), result_.sites.end(), more_time);
    std::stable_sort(result_.functions.begin(), result_.functions.end(), more_time);
    std::sort(result_.pairs.begin(), result_.pairs.end(), [](const PairTraffic& a, const PairTraffic& b) {
      return std::tuple(a.from, a.to) < std::tuple(b.from, b.to);
    });
  }

  const std::span<const RankSnapshot> job_;
  const double observer_began_;
  const Members members_;
  JobTime result_;
  std::map<SiteKey, SiteSum> sites_;
  std::map<std::uint16_t, CallSums> functions_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> pairs_;
};

bool less_share(const RankTime& a, const RankTime& b) { return a.share() < b.share(); }

}  // namespace

double realtime_of(const RankSnapshot& rank, std::uint64_t ticks) noexcept {
  if (rank.ticks_per_second <= 0) return 1e-9 * static_cast<double>(rank.anchor_realtime);
  // The difference is taken as a signed number: an event may precede the anchor.
  const auto after = static_cast<double>(static_cast<std::int64_t>(ticks - rank.anchor_ticks));
  return 1e-9 * static_cast<double>(rank.anchor_realtime) + after / rank.ticks_per_second;
}

double JobTime::mean_share() const noexcept {
  if (ranks.empty()) return 0;
  return std::accumulate(ranks.begin(), ranks.end(), 0.0,
                         [](double sum, const RankTime& rank) { return sum + rank.share(); }) /
         static_cast<double>(ranks.size());
}

const RankTime* JobTime::least() const noexcept {
  const auto found = std::min_element(ranks.begin(), ranks.end(), less_share);
  return found == ranks.end() ? nullptr : &*found;
}

const RankTime* JobTime::most() const noexcept {
  const auto found = std::max_element(ranks.begin(), ranks.end(), less_share);
  return found == ranks.end() ? nullptr : &*found;
}

JobTime measure_job(std::span<const RankSnapshot> job, double observer_began) {
  return Sums(job, observer_began).run();
}

}  // namespace bestride::inline telemetry
