// SPDX-License-Identifier: Apache-2.0
#include "telemetry/detector/slow_communication.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

#include "telemetry/waits/sample_job.hpp"
#include "tests/support/repetitions.hpp"

using namespace bestride;

namespace {

/// A job of steps whose messages have simulated times. Each host has a clock of its own.
class Exchange {
 public:
  enum class Calls { blocking, wait_all };

  Exchange(int hosts, int ranks_per_host, std::uint64_t seed)
      : job(hosts * ranks_per_host), random(seed), per_host_(ranks_per_host) {
    for (std::size_t i = 0; i < job.ranks.size(); ++i) {
      job.ranks[i].visible = true;
      job.ranks[i].host = "node" + std::to_string(host_of(static_cast<int>(i)));
      job.ranks[i].ticks_per_second = 1e9;
      job.ranks[i].anchor_ticks = 1;
    }
    for (int i = 0; i < hosts; ++i) clocks_.push_back(100 + std::uniform_real_distribution(0.0, 1000.0)(random));
    free_.assign(job.ranks.size(), 0);
  }
  int size() const { return static_cast<int>(job.ranks.size()); }
  int host_of(int rank) const { return rank / per_host_; }
  double uniform(double from, double to) { return std::uniform_real_distribution(from, to)(random); }

  /// Who sends to whom in each step.
  std::vector<std::pair<int, int>> pairs;
  Calls calls = Calls::blocking;
  std::uint32_t bytes = 1 << 20;
  double latency = 5e-5;
  double per_byte = 1e-10, per_byte_between = 1e-9;
  double jitter = 0.1;       ///< of a message's time
  std::vector<double> work;  ///< seconds of each rank in a step
  double slow_factor = 1;
  std::set<std::pair<int, int>> slow_pairs;
  bool random_sizes = false;
  double queued_share = 0;  ///< of the time that each rank waits for a processor; -1: not known

  void all_pairs() {
    for (int from = 0; from < size(); ++from)
      for (int to = 0; to < size(); ++to)
        if (from != to) pairs.emplace_back(from, to);
  }
  void neighbors(int width) {
    for (int from = 0; from < size(); ++from)
      for (int distance = 1; distance <= width; ++distance)
        for (const int to : {(from + distance) % size(), (from + size() - distance) % size()})
          pairs.emplace_back(from, to);
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  }
  void slow_host(int host, bool sends, bool receives) {
    for (const auto& [from, to] : pairs)
      if (host_of(from) != host_of(to) && ((sends && host_of(from) == host) || (receives && host_of(to) == host)))
        slow_pairs.insert({from, to});
  }
  void slow_rank(int rank, bool sends, bool receives) {
    for (const auto& [from, to] : pairs)
      if ((sends && from == rank) || (receives && to == rank)) slow_pairs.insert({from, to});
  }

  /// Makes steps for `seconds`, with an observation every second. Returns all paths that were reported.
  std::vector<SlowPathFinding> run(double seconds) {
    std::vector<SlowPathFinding> said;
    const double begin = now_;
    while (now_ < begin + seconds) {
      calls == Calls::blocking ? blocking_step() : waiting_step();
      now_ = *std::max_element(free_.begin(), free_.end());
      if (now_ < next_) continue;
      next_ = now_ + 1;
      for (std::size_t i = 0; i < job.ranks.size(); ++i) {
        RankSnapshot& rank = job.ranks[i];
        rank.read_at = ticks(static_cast<int>(i), now_);
        rank.use.queued_seconds = queued_share < 0 ? -1 : queued_share * now_;
        if (rank.messages.size() > max_messages)
          rank.messages.erase(rank.messages.begin(), rank.messages.end() - max_messages);
      }
      for (SlowPathFinding& each : detector.observe(now_, job.ranks, false))
        if (std::none_of(said.begin(), said.end(),
                         [&](const SlowPathFinding& before) { return before.path.same_as(each.path); }))
          said.push_back(std::move(each));
    }
    return said;
  }

  SampleJob job;
  std::mt19937_64 random;
  SlowCommunication detector;

 private:
  std::uint64_t ticks(int rank, double seconds) const {
    return static_cast<std::uint64_t>((seconds + clocks_[static_cast<std::size_t>(host_of(rank))]) * 1e9);
  }
  double time_of(int from, int to, std::uint32_t size_of) {
    const double factor = slow_pairs.count({from, to}) ? slow_factor : 1;
    return factor * (latency + size_of * (host_of(from) == host_of(to) ? per_byte : per_byte_between)) *
           (1 + uniform(0, jitter) + (uniform(0, 1) < 0.05 ? uniform(0, 5) : 0));
  }
  void compute() {
    for (std::size_t i = 0; i < free_.size(); ++i) free_[i] += (i < work.size() ? work[i] : 1e-3) * uniform(0.8, 1.2);
  }
  void remember(int rank, int peer, bool received, std::uint32_t number, std::uint32_t size_of, double posted,
                double waited, double completed, std::size_t together) {
    MessageSnapshot message;
    message.peer = static_cast<std::uint32_t>(peer);
    message.received = received;
    message.number = number;
    message.bytes = size_of;
    message.together = static_cast<std::uint16_t>(together);
    message.posted = ticks(rank, posted);
    message.waited = ticks(rank, waited);
    message.completed = ticks(rank, completed);
    job.ranks[static_cast<std::size_t>(rank)].messages.push_back(message);
  }
  std::uint32_t next_size() { return random_sizes ? bytes << (random() % 5) >> 2 : bytes; }

  /// MPI_Send and MPI_Recv, one pair after the other, in a random order that is the same on both ranks.
  void blocking_step() {
    compute();
    std::shuffle(pairs.begin(), pairs.end(), random);
    for (const auto& [from, to] : pairs) {
      double &s = free_[static_cast<std::size_t>(from)], &r = free_[static_cast<std::size_t>(to)];
      const std::uint32_t size_of = next_size(), number = ++numbers_[{from, to}];
      const double end = std::max(s, r) + time_of(from, to, size_of);
      remember(from, to, false, number, size_of, s, s, end, 1);
      remember(to, from, true, number, size_of, r, r, end, 1);
      s = r = end;
    }
  }
  /// MPI_Irecv and MPI_Isend with all peers, then MPI_Waitall. Ranks run ahead of each other.
  void waiting_step() {
    compute();
    std::vector<double> ends = free_;
    std::vector<std::size_t> requests(free_.size());
    for (const auto& [from, to] : pairs) {
      const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
      const double end = std::max(free_[f], free_[t]) + time_of(from, to, bytes);
      ends[f] = std::max(ends[f], end), ends[t] = std::max(ends[t], end);
      ++requests[f], ++requests[t];
    }
    for (const auto& [from, to] : pairs) {
      const auto f = static_cast<std::size_t>(from), t = static_cast<std::size_t>(to);
      const std::uint32_t number = ++numbers_[{from, to}];
      remember(from, to, false, number, bytes, free_[f], free_[f], ends[f], requests[f]);
      remember(to, from, true, number, bytes, free_[t], free_[t], ends[t], requests[t]);
    }
    free_ = ends;
  }

  int per_host_;
  std::vector<double> clocks_;  ///< of each host: what it is ahead, seconds
  std::vector<double> free_;    ///< when each rank can begin something
  double now_ = 0, next_ = 0;
  std::map<std::pair<int, int>, std::uint32_t> numbers_;
};

class SlowCommunicationTest : public testing::TestWithParam<std::uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, SlowCommunicationTest, testing::Range<std::uint64_t>(1, 1 + test::repetitions(6)));

std::string text(const std::vector<SlowPathFinding>& said) {
  std::string result;
  for (const SlowPathFinding& each : said)
    result += std::string(name(each.path.kind)) + " " + each.path.host + ">" + each.path.other_host + " " +
              std::to_string(each.path.rank) + ">" + std::to_string(each.path.other_rank) + " x" +
              std::to_string(each.path.factor) + "; ";
  return result;
}

TEST_P(SlowCommunicationTest, CleanJobsAreSilent) {
  for (const auto calls : {Exchange::Calls::blocking, Exchange::Calls::wait_all})
    for (const auto& [hosts, ranks] : {std::pair(1, 6), std::pair(6, 1), std::pair(4, 3)})
      for (const int width : {0, 1, 2}) {
        Exchange job(hosts, ranks, GetParam());
        width ? job.neighbors(width) : job.all_pairs();
        job.calls = calls;
        const auto said = job.run(test::repetitions(hosts > 1 ? 100 : 30));
        EXPECT_TRUE(said.empty()) << hosts << "x" << ranks << " width " << width << ": " << text(said);
      }
}

TEST_P(SlowCommunicationTest, ImbalancedJobsAreSilent) {
  for (const auto calls : {Exchange::Calls::blocking, Exchange::Calls::wait_all})
    for (const auto& [hosts, ranks] : {std::pair(1, 6), std::pair(6, 1), std::pair(4, 3)})
      for (const int width : {0, 2}) {
        Exchange job(hosts, ranks, GetParam());
        width ? job.neighbors(width) : job.all_pairs();
        job.calls = calls;
        job.random_sizes = calls == Exchange::Calls::blocking;
        job.jitter = 0.3;
        for (int i = 0; i < job.size(); ++i)
          job.work.push_back(job.uniform(0, 1) < 0.3 ? 0.05 : job.uniform(1e-3, 5e-3));
        const auto said = job.run(test::repetitions(hosts > 1 ? 100 : 30));
        EXPECT_TRUE(said.empty()) << hosts << "x" << ranks << " width " << width << ": " << text(said);
      }
}

/// Of messages that may be sent eagerly, only the receiver's call counts.
TEST_P(SlowCommunicationTest, ALateSenderOfSmallMessagesIsNotSlow) {
  Exchange job(1, 6, GetParam());
  for (int from = 0; from < 5; ++from) job.pairs.emplace_back(from, 5), job.pairs.emplace_back(5, from);
  for (int from = 0; from < 5; ++from) job.pairs.emplace_back(from, (from + 1) % 5);
  job.bytes = 8192;
  job.latency = 5e-6;
  job.work.assign(6, 1e-3);
  job.work[5] = 2e-2;
  const auto said = job.run(30);
  EXPECT_TRUE(said.empty()) << text(said);
}

TEST_P(SlowCommunicationTest, FewMessagesAreNoEvidence) {
  Exchange job(6, 1, GetParam());
  job.all_pairs();
  job.slow_factor = 4;
  job.slow_pairs = {{1, 2}};
  job.work.assign(6, 8.0);
  EXPECT_TRUE(job.run(100).empty());
}

TEST_P(SlowCommunicationTest, OneSlowLinkWithinAHost) {
  Exchange job(1, 6, GetParam());
  job.all_pairs();
  job.run(10);
  job.slow_factor = 3;
  job.slow_pairs = {{1, 4}};
  const auto said = job.run(20);
  ASSERT_EQ(said.size(), 1u) << text(said);
  EXPECT_EQ(said[0].path.kind, PathKind::link);
  EXPECT_EQ(said[0].path.rank, 1);
  EXPECT_EQ(said[0].path.other_rank, 4);
  EXPECT_EQ(said[0].ranks, (std::vector<std::int32_t>{1, 4}));
  EXPECT_NEAR(said[0].path.factor, 3, 0.5);
  EXPECT_FALSE(said[0].path.between_hosts);
  job.slow_factor = 1;
  job.run(15);
  EXPECT_TRUE(job.run(2).empty()) << "it is as fast as the others again";
}

/// Where ranks wait for a processor, only delays that are longer than such waits count.
TEST_P(SlowCommunicationTest, ShortDelaysAreNoEvidenceOnACrowdedHost) {
  for (const double queued : {-1.0, 0.0, 0.3}) {
    Exchange job(5, 1, GetParam());
    job.all_pairs();
    job.slow_factor = 4;
    job.slow_host(2, true, true);
    job.queued_share = queued;
    const auto said = job.run(20);
    EXPECT_EQ(said.size(), queued == 0 ? 1u : 0u) << text(said);
    job.bytes = 1 << 26;
    EXPECT_EQ(job.run(200).size(), 1u) << "messages of 67 ms";
  }
}

TEST_P(SlowCommunicationTest, OneSlowRankWithinAHost) {
  for (const bool sends : {true, false}) {
    Exchange job(1, 6, GetParam());
    job.all_pairs();
    job.slow_factor = 2;
    job.slow_rank(3, sends, !sends);
    const auto said = job.run(20);
    ASSERT_EQ(said.size(), 1u) << text(said);
    EXPECT_EQ(said[0].path.kind, sends ? PathKind::send : PathKind::receive);
    EXPECT_EQ(said[0].path.rank, 3);
    EXPECT_EQ(said[0].ranks, std::vector<std::int32_t>{3});
  }
}

TEST_P(SlowCommunicationTest, OneSlowLinkBetweenHosts) {
  for (const int ranks : {1, 3}) {
    Exchange job(5, ranks, GetParam());
    job.all_pairs();
    job.slow_factor = 4;
    for (const auto& [from, to] : job.pairs)
      if (job.host_of(from) == 1 && job.host_of(to) == 3) job.slow_pairs.insert({from, to});
    const auto said = job.run(20);
    ASSERT_EQ(said.size(), 1u) << text(said);
    EXPECT_TRUE(said[0].path.kind == PathKind::link || said[0].path.kind == PathKind::two_way_link) << text(said);
    EXPECT_EQ(said[0].path.host, "node1");
    EXPECT_EQ(said[0].path.other_host, "node3");
    EXPECT_GT(said[0].path.factor, 1.5);
    EXPECT_LT(said[0].path.factor, 4.5);
  }
}

TEST_P(SlowCommunicationTest, OneSlowHost) {
  for (const auto& [sends, receives] : {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
    Exchange job(5, 2, GetParam());
    job.all_pairs();
    job.slow_factor = 4;
    job.slow_host(2, sends, receives);
    const auto said = job.run(20);
    ASSERT_EQ(said.size(), 1u) << text(said);
    // Without a common clock, both directions may share the difference.
    if (said[0].path.kind != PathKind::node || (sends && receives)) {
      EXPECT_EQ(said[0].path.kind, !sends ? PathKind::receive : !receives ? PathKind::send : PathKind::node);
    }
    EXPECT_EQ(said[0].path.host, "node2");
    EXPECT_EQ(said[0].ranks, (std::vector<std::int32_t>{4, 5}));
    EXPECT_EQ(said[0].confidence, 0.9);
  }
}

/// A small difference takes longer to distinguish from noise.
TEST_P(SlowCommunicationTest, OneHostThatIsSlowByAFifth) {
  for (const bool sends : {true, false}) {
    Exchange job(6, 2, GetParam());
    job.all_pairs();
    job.run(10);
    job.slow_factor = 1.2;
    job.slow_host(4, sends, !sends);
    EXPECT_TRUE(job.run(20).empty());
    const auto said = job.run(40);
    ASSERT_EQ(said.size(), 1u) << text(said);
    EXPECT_EQ(said[0].path.kind, sends ? PathKind::send : PathKind::receive);
    EXPECT_EQ(said[0].path.host, "node4");
    // Without a common clock, the other direction has a part of the difference.
    EXPECT_GT(said[0].path.factor, 1.1);
    EXPECT_LT(said[0].path.factor, 1.25);
    job.slow_factor = 1;
    job.run(20);
    EXPECT_TRUE(job.run(2).empty());
  }
}

/// Calls that complete several messages are weaker evidence, so the confidence is lower.
TEST_P(SlowCommunicationTest, ARankThatIsSlowInAHaloExchange) {
  Exchange job(1, 24, GetParam());
  job.neighbors(2);
  job.calls = Exchange::Calls::wait_all;
  job.slow_factor = 4;
  job.slow_rank(5, true, true);
  const auto said = job.run(30);
  ASSERT_EQ(said.size(), 1u) << text(said);
  EXPECT_EQ(said[0].path.rank, 5) << text(said);
  EXPECT_EQ(said[0].path.kind, PathKind::node);
  EXPECT_FALSE(said[0].path.exact);
  EXPECT_LT(said[0].confidence, 0.8);
}

/// Random matrices: excess in logarithms.
TEST_P(SlowCommunicationTest, RandomMatrices) {
  std::mt19937_64 random(GetParam());
  int wrong = 0, missed = 0, named = 0;
  constexpr int matrices = 200;
  for (int i = 0; i < matrices; ++i) {
    const auto size = static_cast<std::uint32_t>(5 + random() % 20);
    const auto share = 0.4 + 0.6 * static_cast<double>(random() % 100) / 100;
    const double noise = 0.02 + 0.08 * static_cast<double>(random() % 100) / 100;
    const auto node = static_cast<std::uint32_t>(random() % size), other = (node + 1) % size;
    const auto fault = random() % 4;  // nothing, link, sender, receiver
    std::vector<PairDelay> pairs;
    for (std::uint32_t from = 0; from < size; ++from)
      for (std::uint32_t to = 0; to < size; ++to) {
        if (from == to || (std::uniform_real_distribution()(random) > share && !(from == node && to == other)))
          continue;
        PairDelay pair;
        pair.from = from, pair.to = to, pair.messages = 10, pair.exact = true;
        pair.excess = noise * std::normal_distribution()(random);
        if ((fault == 1 && from == node && to == other) || (fault == 2 && from == node) || (fault == 3 && to == node))
          pair.excess += std::log(3.0);
        pairs.push_back(pair);
      }
    const auto said = find_slow_paths(pairs, size, 1.5);
    const PathKind kind = fault == 1 ? PathKind::link : fault == 2 ? PathKind::send : PathKind::receive;
    for (const SlowNodePath& path : said)
      // A row or column of few entries has none but its links.
      if (fault == 0 || (path.kind == PathKind::link ? (fault == 2   ? path.node != node
                                                        : fault == 3 ? path.other != node
                                                                     : path.node != node || path.other != other)
                                                     : path.node != node || path.kind != kind))
        ++wrong;
      else
        ++named;
    missed += fault != 0 && said.empty();
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(missed, 5);
  EXPECT_GT(named, matrices / 2);
}

TEST(SlowCommunicationWork, AThousandHosts) {
  Exchange job(1000, 1, 1);
  job.neighbors(3);
  job.slow_factor = 4;
  job.slow_host(500, true, true);
  const auto said = job.run(20);
  ASSERT_EQ(said.size(), 1u) << text(said);
  EXPECT_EQ(said[0].path.host, "node500");
}

}  // namespace
