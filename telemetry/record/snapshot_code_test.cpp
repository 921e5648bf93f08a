// SPDX-License-Identifier: Apache-2.0
// Snapshots as bytes: random ones survive a round trip; truncated and changed bytes are rejected or give valid values.
#include "telemetry/record/snapshot_code.hpp"

#include <gtest/gtest.h>

#include <random>

#include "telemetry/record/functions.hpp"

namespace bestride::inline telemetry {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(engine_);
  }
  std::uint64_t any() {
    // All lengths of the code.
    return engine_() >> below(64);
  }
  std::int32_t number() { return static_cast<std::int32_t>(any()); }
  bool coin() { return below(2) == 1; }
  std::string text() { return std::string(below(40), static_cast<char>(below(256))); }
  std::uint16_t function() {
    return coin() ? no_function : static_cast<std::uint16_t>(below(recorded_functions().size()));
  }
  CallSnapshot call() {
    return {any(),
            any(),
            any(),
            function(),
            static_cast<std::uint16_t>(any()),
            static_cast<std::uint32_t>(any()),
            number(),
            number(),
            number(),
            number(),
            any(),
            static_cast<std::uint32_t>(any()),
            coin() ? no_index : static_cast<std::uint32_t>(below(8))};
  }
  RankSnapshot rank() {
    RankSnapshot r;
    r.path = text(), r.job = text(), r.host = text(), r.executable = text(), r.watcher = text(), r.launch = text();
    r.pid = number(), r.process_start = any(), r.pid_namespace = any();
    r.state = static_cast<ProcessState>(below(4));
    r.alive = coin(), r.visible = coin();
    r.use = {static_cast<double>(any()) * 1e-3, any(), any(), static_cast<double>(any()) * 1e-6, number()};
    if (coin()) r.end = EndSnapshot{EndKind::exit, any(), number(), text()};
    r.system_exit = text();
    r.wait_status = number(), r.ended = static_cast<double>(any()) * -1e-6;
    r.world_size = static_cast<std::int32_t>(1 + below(100000));
    r.world_rank = static_cast<std::int32_t>(below(static_cast<std::uint64_t>(r.world_size)));
    r.functions_known = coin(), r.ticks_per_second = 2.5e9, r.anchor_ticks = any();
    r.anchor_realtime = static_cast<std::int64_t>(any()), r.read_at = any();
    for (std::uint64_t i = below(4); i > 0; --i) {
      ThreadSnapshot t;
      t.slot = static_cast<unsigned>(below(max_threads)), t.tid = number(), t.in_mpi = coin();
      t.calls = any(), t.polls = any(), t.poll_function = function(), t.channel = text();
      if (coin()) t.current = call();
      for (std::uint64_t k = below(50); k > 0; --k) t.finished.push_back(call());
      r.threads.push_back(std::move(t));
    }
    for (std::uint64_t i = below(5); i > 0; --i)
      r.communicators.push_back({static_cast<std::uint32_t>(below(256)), any(), any(),
                                 static_cast<std::uint32_t>(any()), number(), number(), number(), number(),
                                 static_cast<CommunicatorKind>(1 + below(4)), text(), coin(),
                                 static_cast<std::uint32_t>(any()), no_index, number(), coin() ? 1u : 0u});
    for (std::uint64_t i = below(3); i > 0; --i)
      r.epochs.push_back({static_cast<std::uint32_t>(any()), number(), 3, static_cast<std::uint32_t>(any()), 4});
    if (coin()) r.amounts.push_back({1, static_cast<std::uint32_t>(any()), {1, unknown_amount}, {2}});
    for (std::uint64_t i = below(5); i > 0; --i)
      r.requests.push_back({any(), any(), any(), function(), static_cast<std::uint32_t>(any()), number(), number(),
                            static_cast<std::uint32_t>(any()), static_cast<std::uint16_t>(any()), 1, 7});
    for (std::uint64_t i = below(3); i > 0; --i) r.modules.push_back({any(), {1, 2, 255}, text()});
    const auto module = [&] {
      return r.modules.empty() || coin() ? no_index : static_cast<std::uint32_t>(below(r.modules.size()));
    };
    for (int i = 0; i < 8; ++i) {
      SiteSnapshot s{any(), module(), function(), any(), any(), any(), any(), {}, {}};
      for (auto& count : s.histogram) count = static_cast<std::uint32_t>(any());
      for (std::uint64_t k = below(6); k > 0; --k) s.stack.push_back({any(), module()});
      r.sites.push_back(std::move(s));
    }
    r.peers.push_back({no_index, 3, any(), any(), any(), any()});
    for (std::uint64_t i = below(5); i > 0; --i)
      r.messages.push_back({no_index, static_cast<std::uint32_t>(any()), coin(), static_cast<std::uint16_t>(any()),
                            static_cast<std::uint16_t>(any()), static_cast<std::uint32_t>(any()),
                            static_cast<std::uint32_t>(any()), any(), any(), any()});
    return r;
  }

 private:
  std::mt19937_64 engine_;
};

std::string bytes_of(const RankSnapshot& rank) {
  ByteWriter to;
  write_snapshot(to, rank);
  return to.bytes();
}

TEST(SnapshotCode, RandomSnapshotsComeBack) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const RankSnapshot rank = Random(seed).rank();
    const std::string bytes = bytes_of(rank);
    ByteReader from(bytes);
    const RankSnapshot back = read_snapshot(from);
    ASSERT_TRUE(from.complete()) << seed;
    ASSERT_EQ(bytes_of(back), bytes) << seed;
    ASSERT_EQ(back.host, rank.host);
    ASSERT_EQ(back.ended, rank.ended);
    ASSERT_EQ(back.wait_status, rank.wait_status);
    ASSERT_EQ(back.end.has_value(), rank.end.has_value());
    ASSERT_EQ(back.system_exit, rank.system_exit);
    ASSERT_EQ(back.threads.size(), rank.threads.size());
    ASSERT_EQ(back.messages.size(), rank.messages.size());
    for (std::size_t i = 0; i < rank.messages.size(); ++i) {
      const MessageSnapshot &a = back.messages[i], &b = rank.messages[i];
      ASSERT_TRUE(a.communicator == b.communicator && a.peer == b.peer && a.received == b.received && a.tag == b.tag &&
                  a.together == b.together && a.number == b.number && a.bytes == b.bytes && a.posted == b.posted &&
                  a.waited == b.waited && a.completed == b.completed);
    }
    for (std::size_t i = 0; i < rank.threads.size(); ++i) {
      ASSERT_EQ(back.threads[i].current.has_value(), rank.threads[i].current.has_value());
      if (rank.threads[i].current) {
        ASSERT_EQ(back.threads[i].current->second_tag, rank.threads[i].current->second_tag);
      }
    }
  }
}

TEST(SnapshotCode, TruncatedBytesAreRefused) {
  const std::string bytes = bytes_of(Random(1).rank());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::string part = bytes.substr(0, length);
    ByteReader from(part);
    read_snapshot(from);
    ASSERT_FALSE(from.complete()) << length;
  }
}

TEST(SnapshotCode, ChangedBytesGiveValidIndicesOrNothing) {
  Random random(7);
  int refused = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    std::string bytes = bytes_of(Random(seed % 50).rank());
    for (std::uint64_t i = 1 + random.below(3); i > 0; --i)
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    ByteReader from(bytes);
    const RankSnapshot rank = read_snapshot(from);
    if (!from.good()) {
      ++refused;
      continue;
    }
    for (const ThreadSnapshot& thread : rank.threads) {
      ASSERT_LT(thread.slot, max_threads);
      for (const CallSnapshot& call : thread.finished) {
        ASSERT_TRUE(call.site == no_index || call.site < rank.sites.size());
        ASSERT_TRUE(call.function == no_function || call.function < recorded_functions().size());
      }
    }
    for (const SiteSnapshot& site : rank.sites) {
      ASSERT_TRUE(site.module == no_index || site.module < rank.modules.size());
      for (const FrameSnapshot& frame : site.stack)
        ASSERT_TRUE(frame.module == no_index || frame.module < rank.modules.size());
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(SnapshotCode, WhatWasNotSentIsTakenFromBefore) {
  const RankSnapshot rank = Random(3).rank();
  RankSnapshot sent = rank;
  sent.partial = true;
  const std::string bytes = bytes_of(sent);
  EXPECT_LT(bytes.size(), bytes_of(rank).size());
  ByteReader from(bytes);
  const RankSnapshot partial = read_snapshot(from);
  ASSERT_TRUE(from.complete());
  EXPECT_TRUE(partial.partial);
  RankSnapshot bare = partial;
  complete(bare, nullptr);
  EXPECT_TRUE(bare.partial && bare.modules.empty() && bare.executable.empty());
  RankSnapshot whole = partial, before = rank;
  complete(whole, &before);
  EXPECT_FALSE(whole.partial);
  EXPECT_EQ(bytes_of(whole), bytes_of(rank));
  RankSnapshot next = partial;
  complete(next, &bare);
  EXPECT_TRUE(next.partial) << "the one before was not complete";
  before = rank;
  before.sites.pop_back();
  next = partial;
  complete(next, &before);
  EXPECT_TRUE(next.partial) << "there is a new call site";
  before = rank;
  next = partial;
  next.sites[1].calls += 5, next.sites[1].ticks += 50;
  complete(next, &before);
  EXPECT_EQ(next.sites[1].calls, rank.sites[1].calls + 5);
  EXPECT_EQ(next.sites[1].ticks, rank.sites[1].ticks + 50);
  EXPECT_EQ(next.sites[1].address, rank.sites[1].address);
}

TEST(ByteCode, NumbersOfAllSizesComeBack) {
  for (int shift = 0; shift < 64; ++shift)
    for (const std::int64_t offset : {-1, 0, 1}) {
      const auto value = static_cast<std::int64_t>((1ULL << shift) + static_cast<std::uint64_t>(offset));
      ByteWriter to;
      to(value, static_cast<std::uint64_t>(value), -static_cast<double>(value));
      ByteReader from(to.bytes());
      std::int64_t a = 0;
      std::uint64_t b = 0;
      double c = 0;
      from(a, b, c);
      ASSERT_TRUE(from.complete());
      ASSERT_EQ(a, value);
      ASSERT_EQ(b, static_cast<std::uint64_t>(value));
      ASSERT_EQ(c, -static_cast<double>(value));
    }
}

TEST(ByteCode, ALengthBeyondTheEndIsRefused) {
  ByteWriter to;
  to(std::uint64_t{1} << 62, std::string("abc"));
  ByteReader from(to.bytes());
  std::vector<int> values;
  from.list(values, 1 << 20, [](auto& archive, int& value) { archive(value); });
  EXPECT_FALSE(from.good());
  EXPECT_TRUE(values.empty());
}

TEST(ByteCode, AValueThatDoesNotFitIsRefused) {
  ByteWriter to;
  to(std::uint64_t{300});
  ByteReader from(to.bytes());
  std::uint8_t small = 0;
  from(small);
  EXPECT_FALSE(from.good());
}

}  // namespace
}  // namespace bestride::inline telemetry
