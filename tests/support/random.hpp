// SPDX-License-Identifier: Apache-2.0
#pragma once
// Seeded random numbers with the same sequence on every platform and every rank. The distributions of <random> do not
// guarantee that.
#include <cstdint>
#include <span>

namespace bestride::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// splitmix64 (Steele, Lea, Flood, OOPSLA'14).
  std::uint64_t bits() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// A number in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) noexcept {
    return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) noexcept { return between(0, 99) < percent; }
  template <class Range>
  auto& pick(Range&& range) noexcept {
    return range[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(std::size(range)) - 1))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace bestride::test
