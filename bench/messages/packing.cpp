// SPDX-License-Identifier: Apache-2.0
#include "packing.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/median.hpp"

namespace messages {
namespace {

constexpr int samples = 21;
constexpr unsigned char canary = 0xa5;

/// Lowest and highest byte of all elements, relative to the buffer.
struct Range {
  std::ptrdiff_t low = 0, high = 0;
};

Range range_of(const Shape& shape, int count) {
  Range range{PTRDIFF_MAX, PTRDIFF_MIN};
  for (const Block& block : shape.blocks())
    for (int i : {0, count - 1}) {
      range.low = std::min(range.low, block.offset + i * shape.extent());
      range.high = std::max(range.high, block.offset + block.length + i * shape.extent());
    }
  return range;
}

/// The expected bytes, computed without MPI.
template <class Visit>
void each_block(const Shape& shape, int count, Visit&& visit) {
  for (int i = 0; i < count; ++i)
    for (const Block& block : shape.blocks()) visit(block.offset + i * shape.extent(), block.length);
}

template <class Action>
std::vector<double> time_of(double seconds, Action&& action) {
  action();
  double start = MPI_Wtime();
  action();
  const double once = std::max(MPI_Wtime() - start, 1e-9);
  const int turns = std::max(1, static_cast<int>(seconds / samples / once));
  std::vector<double> times;
  for (int s = 0; s < samples; ++s) {
    start = MPI_Wtime();
    for (int i = 0; i < turns; ++i) action();
    times.push_back((MPI_Wtime() - start) / turns * 1e6);
  }
  return times;
}

}  // namespace

Packing measure_packing(const Case& chosen, double seconds) {
  Message message = chosen.make();
  Shape& shape = message.send;
  const int count = message.send_count;
  shape.commit();
  const Range range = range_of(shape, count);
  const std::ptrdiff_t size = shape.size() * count;
  std::vector<unsigned char> memory(static_cast<std::size_t>(range.high - range.low) + 64),
      packed(static_cast<std::size_t>(size)), copy(packed);
  unsigned char* const user = memory.data() - range.low;
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<unsigned char>(i * 131 + i / 251);
  const auto pack = [&] {
    int position = 0;
    MPI_Pack(user, count, shape.type(), packed.data(), static_cast<int>(size), &position, MPI_COMM_WORLD);
  };
  const auto unpack = [&] {
    int position = 0;
    MPI_Unpack(packed.data(), static_cast<int>(size), &position, user, count, shape.type(), MPI_COMM_WORLD);
  };

  Packing result;
  for (Timing* timing : {&result.pack, &result.unpack}) {
    timing->payload = size;
    timing->samples = samples;
    std::ptrdiff_t blocks = 0;
    each_block(shape, count, [&](std::ptrdiff_t, std::ptrdiff_t) { ++blocks; });
    timing->block = static_cast<double>(size) / static_cast<double>(blocks);
  }
  // Twice, because a library may handle the first use of a type differently.
  bool right = true;
  for (int turn = 0; turn < 2; ++turn) {
    std::fill(packed.begin(), packed.end(), canary);
    pack();
    std::ptrdiff_t at = 0;
    each_block(shape, count, [&](std::ptrdiff_t offset, std::ptrdiff_t length) {
      right = right && std::memcmp(user + offset, packed.data() + at, static_cast<std::size_t>(length)) == 0;
      at += length;
    });
  }
  result.pack.right = right;
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<unsigned char> expected(memory.size(), canary);
    std::fill(memory.begin(), memory.end(), canary);
    std::ptrdiff_t at = 0;
    each_block(shape, count, [&](std::ptrdiff_t offset, std::ptrdiff_t length) {
      std::memcpy(expected.data() + (offset - range.low), packed.data() + at, static_cast<std::size_t>(length));
      at += length;
    });
    unpack();
    right = right && memory == expected;
  }
  result.unpack.right = right;
  if (seconds <= 0) return result;
  const std::vector<double> copied = time_of(seconds / 4, [&] {
    std::memcpy(copy.data(), packed.data(), static_cast<std::size_t>(size));
    asm volatile("" : : "r"(copy.data()) : "memory");
  });
  const auto fill = [&](Timing& timing, const std::vector<double>& times) {
    timing.typed_us = bestride::median_of(times);
    timing.typed_fastest_us = *std::min_element(times.begin(), times.end());
    timing.contiguous_us = bestride::median_of(copied);
  };
  fill(result.pack, time_of(seconds, pack));
  fill(result.unpack, time_of(seconds, unpack));
  return result;
}

}  // namespace messages
