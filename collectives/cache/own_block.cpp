// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/own_block.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/hash.hpp"

namespace bestride::inline collectives {

std::uint64_t OwnBlock::hash_on(std::uint64_t before, std::int64_t index) const noexcept {
  const Range range = piece_of({0, bytes_}, index, step_);
  return content_hash(read(range), range.length(), before);
}

bool OwnBlock::equals(const std::byte* older, std::int64_t index) const noexcept {
  const Range range = piece_of({0, bytes_}, index, step_);
  return std::memcmp(read(range), older + range.first, static_cast<std::size_t>(range.length())) == 0;
}

const std::byte* OwnBytes::read(Range range) const noexcept {
  const Range there{begin_ + range.first, begin_ + range.last};
  if (const std::byte* here = vectors_.at(node_, there)) return here;
  vectors_.read(node_, there, buffer_);
  return buffer_;
}

int OwnBytes::samples() const noexcept { return static_cast<int>(std::min<std::int64_t>(sample_words, bytes() / 2)); }

void OwnBytes::sample(std::uint16_t* words) const noexcept {
  const int count = samples();
  for (int i = 0; i < count; ++i) {
    const Range stratum = part_of(bytes() / 2, count, i);
    const std::int64_t place = stratum.first + static_cast<std::int64_t>(scattered(static_cast<std::uint64_t>(i)) %
                                                                         static_cast<std::uint64_t>(stratum.length()));
    vectors_.read(node_, {begin_ + 2 * place, begin_ + 2 * place + 2}, words + i);
  }
}

}  // namespace bestride::inline collectives
