// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/own_block.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/hash.hpp"

namespace bestride {

const std::byte* OwnBlock::bytes_of(std::int64_t index, std::int64_t* bytes) const noexcept {
  const Range range = piece_of(range_, index, step);
  *bytes = range.bytes();
  if (const std::byte* here = strings_.at(node_, range)) return here;
  strings_.read(node_, range, room_);
  return room_;
}

std::uint64_t OwnBlock::hash_on(std::uint64_t before, std::int64_t index) const noexcept {
  std::int64_t bytes;
  const std::byte* data = bytes_of(index, &bytes);
  return content_hash(data, bytes, before);
}

bool OwnBlock::equals(const std::byte* older, std::int64_t index) const noexcept {
  std::int64_t bytes;
  const std::byte* data = bytes_of(index, &bytes);
  return std::memcmp(data, older + index * step, static_cast<std::size_t>(bytes)) == 0;
}

int OwnBlock::samples() const noexcept { return static_cast<int>(std::min<std::int64_t>(sample_words, range_.bytes() / 2)); }

void OwnBlock::sample(std::uint16_t* words) const noexcept {
  const int count = samples();
  for (int i = 0; i < count; ++i) {
    const Range stratum = part_of(range_.bytes() / 2, count, i);
    const std::int64_t place = stratum.first + static_cast<std::int64_t>(scattered(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(stratum.bytes()));
    strings_.read(node_, {range_.first + 2 * place, range_.first + 2 * place + 2}, words + i);
  }
}

}  // namespace bestride
