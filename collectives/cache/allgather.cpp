// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/allgather.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "collectives/cache/delta_code.hpp"
#include "collectives/cache/lookup.hpp"
#include "collectives/share.hpp"

namespace bestride {
namespace {

/// Bytes of a piece of which a difference is made: 5 % of the words changed, 16 KiB pieces sent 1.05 times the bytes of 128 KiB ones.
constexpr std::int64_t long_piece = 128 << 10;

class CachedAllgather final : public Kept {
 public:
  CachedAllgather(Hierarchy& hierarchy, const RankBlocks& strings, CacheTable& table, Arena& arena, Pace pace)
      : h_(hierarchy),
        strings_(strings),
        pace_(pace),
        own_(strings.part(hierarchy.node(), hierarchy.local_rank())),
        own_bytes_(strings, hierarchy.node(), hierarchy.local_rank(), hierarchy.staging()),
        lookup_(hierarchy, strings, own_bytes_, table, arena, CacheTable::plain) {
    for (const std::int64_t bytes : table.blocks())
      if (bytes % 2) unit_ = 1;
  }

  Strand run() {
    if (!lookup_.active()) {
      co_await share(h_, strings_, pace_, unit_);
      co_return;
    }
    co_await lookup_.run();
    if (const std::byte* result = lookup_.hit())
      co_await copy(result);
    else
      co_await gather();
  }

  void keep(int node, Range range, const std::byte* data) noexcept override {
    if (std::byte* to = lookup_.place(node, range)) std::memcpy(to, data, static_cast<std::size_t>(range.bytes()));
  }

 private:
  Strand copy(const std::byte* result) {
    for (int node = 0; node < h_.nodes(); ++node) {
      const Range own = node == h_.node() ? own_ : Range{};
      const Range parts[2] = {{0, own.first}, {own.last, strings_.bytes(node)}};
      for (int part = 0; part < 2; ++part)
        for (std::int64_t i = 0; i < pieces_in(parts[part].bytes(), OwnBlock::step); ++i) {
          const Range range = piece_of(parts[part], i, OwnBlock::step);
          strings_.write(node, range, result + lookup_.begins()[static_cast<std::size_t>(node)] + range.first);
          co_await pause();
        }
    }
  }

  Strand gather() {
    const std::byte* const base = lookup_.base();
    DeltaCode code(base, lookup_.begins());
    std::vector<Strand> strands;
    strands.push_back(share(h_, strings_, base ? pace_of_differences() : pace_, unit_, lookup_.keeps() ? this : nullptr, base ? &code : nullptr));
    if (lookup_.keeps()) strands.push_back(keep_own());
    co_await all_of(strands);
    lookup_.saved(code.saved());
    lookup_.written();
  }

  /// A piece at a time, while the wire is busy.
  Strand keep_own() {
    for (std::int64_t i = 0; i < pieces_in(own_.bytes(), pace_.piece); ++i) {
      const Range range = piece_of(own_, i, pace_.piece);
      if (std::byte* to = lookup_.place(h_.node(), range)) strings_.read(h_.node(), range, to);
      co_await pause();
    }
  }

  /// A difference is a small part of its piece, and is sent in a message of its own, with headers.
  Pace pace_of_differences() const noexcept {
    Pace pace = pace_;
    pace.in_flight = 2;
    pace.piece = std::max(pace.piece, std::min(8 * pace.piece, long_piece));
    return pace;
  }

  Hierarchy& h_;
  const RankBlocks& strings_;
  Pace pace_;
  const Range own_;
  const OwnBytes own_bytes_;
  Lookup lookup_;
  std::int64_t unit_ = 2;  ///< cut where 16-bit words are, so that a word that changed is one that changed for both ends
};

}  // namespace

Strand allgather_cached(Hierarchy& hierarchy, const RankBlocks& strings, CacheTable& table, Arena& arena, Pace pace) {
  CachedAllgather work(hierarchy, strings, table, arena, pace);
  co_await work.run();
}

}  // namespace bestride
