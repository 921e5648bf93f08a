// SPDX-License-Identifier: Apache-2.0
// A stream of pieces from one processor to another through a channel of the collectives over several nodes, with
// ordinary stores, with stores past the caches, and as the channel chooses.
//
//   bench_channels [CPU CPU]    default: 0 1
// Prints GB/s by the size of a piece (median of 9 turns of 64 MiB, in turns), and the round trip of a cache line
// between the two processors before and after.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/median.hpp"
#include "collectives/core/channels.hpp"

namespace {

using namespace bestride;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t stream_bytes = 64 << 20, user_bytes = 16 << 20;
constexpr std::int64_t least_piece = 4 << 10, most_piece = 256 << 10;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

bool bind(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
}

/// In microseconds.
double round_trip(int cpu) {
  struct alignas(128) Flag {
    std::atomic<int> number{0};
  };
  Flag here, there;
  constexpr int times = 20'000;
  std::thread answering([&] {
    if (!bind(cpu)) std::exit(1);
    for (int i = 1; i <= times; ++i) {
      while (here.number.load(std::memory_order_acquire) < i) {
      }
      there.number.store(i, std::memory_order_release);
    }
  });
  Clock::time_point begin;
  for (int i = 1; i <= times; ++i) {
    if (i == times / 2) begin = Clock::now();
    here.number.store(i, std::memory_order_release);
    while (there.number.load(std::memory_order_acquire) < i) {
    }
  }
  const double seconds = seconds_since(begin);
  answering.join();
  return seconds / (times / 2) * 1e6;
}

/// The two ends of a channel.
struct Ends {
  Channels from, to;
};

double gigabytes_per_second(Ends* ends, std::int64_t piece, int cpu, std::byte* user) {
  const std::int64_t pieces = stream_bytes / piece;
  const Operand sent(user, user_bytes);
  std::byte* const received = user + user_bytes;
  std::thread receiving([&] {
    if (!bind(cpu)) std::exit(1);
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::byte* data;
      while (!(data = ends->to.arrived(0, ChannelKind::own))) {
      }
      std::memcpy(received + i * piece % user_bytes, data, static_cast<std::size_t>(piece));
      ends->to.take(0, ChannelKind::own);
    }
  });
  const Clock::time_point begin = Clock::now();
  for (std::int64_t i = 0; i < pieces; ++i) {
    while (!ends->from.vacant(ChannelKind::own)) {
    }
    const std::int64_t at = i * piece % user_bytes;
    ends->from.fill(ChannelKind::own, sent, {at, at + piece});
    ends->from.publish(ChannelKind::own);
  }
  receiving.join();
  return static_cast<double>(stream_bytes) / seconds_since(begin) / 1e9;
}

std::byte* shared(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::exit(1);
  return static_cast<std::byte*>(memory);
}

}  // namespace

int main(int argc, char** argv) {
  const int cpus[] = {argc > 2 ? std::atoi(argv[1]) : 0, argc > 2 ? std::atoi(argv[2]) : 1};
  if (!bind(cpus[0])) {
    std::fprintf(stderr, "bench_channels: processor %d can't be used\n", cpus[0]);
    return 1;
  }
  std::byte* const user = shared(2 * user_bytes);
  std::memset(user, 1, 2 * user_bytes);
  std::printf("round trip before: %.2f us\n   bytes  ordinary      past    chosen\n", round_trip(cpus[1]));
  for (std::int64_t piece = least_piece; piece <= most_piece; piece *= 4) {
    const ChannelShape shape{2, piece};
    std::vector<Ends> ends;
    for (const std::int64_t streaming_from : {0, 1, -1}) {
      std::byte* const memory = shared(shape.bytes());
      ends.push_back({Channels(memory, shape, 0, SlotStores(streaming_from)), Channels(memory, shape, 1)});
    }
    std::vector<double> speeds[3];
    for (int turn = 0; turn < 9; ++turn)
      for (std::size_t i = 0; i < 3; ++i) speeds[i].push_back(gigabytes_per_second(&ends[i], piece, cpus[1], user));
    std::printf("%8lld%10.1f%10.1f%10.1f\n", static_cast<long long>(piece), median_of(speeds[0]), median_of(speeds[1]),
                median_of(speeds[2]));
  }
  std::printf("round trip after: %.2f us\n", round_trip(cpus[1]));
}
