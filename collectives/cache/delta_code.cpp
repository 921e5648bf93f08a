// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/delta_code.hpp"

#include <cstring>

#include "base/copy.hpp"
#include "collectives/cache/own_block.hpp"
#include "kernels/delta/delta.hpp"

namespace bestride::inline collectives {
namespace {

/// True if so much of the piece has changed that a delta would not be shorter. It is estimated from a sample, because
/// encoding a dense piece to find out would cost too much. It is true only if at most 1/64 of the sampled words are
/// unchanged; from 1/16 on a delta is shorter.
bool looks_dense(const std::byte* older, const std::byte* newer, std::int64_t bytes) noexcept {
  constexpr int spots = 128, spot_words = 16, spot_bytes = 2 * spot_words;
  if (bytes < 32 * 1024) return false;
  int equal = 0;
  for (int i = 0; i < spots; ++i) {
    const Range stratum = part_of(bytes / spot_bytes, spots, i);
    const std::int64_t place =
        spot_bytes * (stratum.first + static_cast<std::int64_t>(scattered(static_cast<std::uint64_t>(i)) %
                                                                static_cast<std::uint64_t>(stratum.length())));
    std::uint16_t a[spot_words], b[spot_words];
    copy_bytes(a, older + place, sizeof a);
    copy_bytes(b, newer + place, sizeof b);
    for (int k = 0; k < spot_words; ++k) equal += a[k] == b[k];
    if (equal > spots * spot_words / 64) return false;
  }
  return true;
}

}  // namespace

std::int64_t DeltaCode::encode(int node, Range range, const std::byte* piece, std::byte* out) noexcept {
  const std::byte* older = base(node, range);
  if (looks_dense(older, piece, range.length())) return 0;
  const std::int64_t size = delta::encode(older, piece, range.length(), out, range.length() - 1);
  if (size == delta::dense) return 0;
  saved_ += range.length() - size;
  return size;
}

bool DeltaCode::decode(int node, Range range, const std::byte* encoded, std::int64_t bytes, std::byte* piece) noexcept {
  copy_bytes(piece, base(node, range), static_cast<std::size_t>(range.length()));
  return delta::apply(encoded, bytes, piece, range.length());
}

}  // namespace bestride::inline collectives
