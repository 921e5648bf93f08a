// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/allgather.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/copy.hpp"
#include "collectives/algorithms/allgather.hpp"
#include "collectives/cache/delta_code.hpp"
#include "collectives/cache/lookup.hpp"

namespace bestride::inline collectives {
namespace {

/// Piece size for differences. With 5 % of the words changed, 16 KiB pieces sent 1.05 times the bytes of 128 KiB
/// pieces.
constexpr std::int64_t long_piece = 128 << 10;

class CachedAllgather final : public PieceObserver {
 public:
  CachedAllgather(Hierarchy& hierarchy, const RankBlocks& vectors, CacheTable& table, Arena& arena,
                  PipelineSettings pipeline)
      : h_(hierarchy),
        vectors_(vectors),
        pipeline_(pipeline),
        own_(vectors.part(hierarchy.node(), hierarchy.local_rank())),
        own_bytes_(vectors, hierarchy.node(), hierarchy.local_rank(), hierarchy.staging()),
        lookup_(hierarchy, vectors, own_bytes_, table, arena, CacheTable::plain) {
    for (const std::int64_t bytes : table.blocks())
      if (bytes % 2) unit_ = 1;
  }

  Task run() {
    if (!lookup_.active()) {
      co_await allgather(h_, vectors_, pipeline_, unit_);
      co_return;
    }
    co_await lookup_.run();
    if (const std::byte* result = lookup_.hit())
      co_await copy(result);
    else
      co_await gather();
  }

  void keep(int node, Range range, const std::byte* data) noexcept override {
    if (std::byte* to = lookup_.memory_for(node, range)) copy_bytes(to, data, static_cast<std::size_t>(range.length()));
  }

 private:
  Task copy(const std::byte* result) {
    for (int node = 0; node < h_.nodes(); ++node) {
      const Range own = node == h_.node() ? own_ : Range{};
      const Range parts[2] = {{0, own.first}, {own.last, vectors_.bytes(node)}};
      for (int part = 0; part < 2; ++part)
        for (std::int64_t i = 0; i < pieces_in(parts[part].length(), OwnBlock::step); ++i) {
          const Range range = piece_of(parts[part], i, OwnBlock::step);
          vectors_.write(node, range, result + lookup_.begins()[static_cast<std::size_t>(node)] + range.first);
          co_await pause();
        }
    }
  }

  Task gather() {
    const std::byte* const base = lookup_.base();
    DeltaCode code(base, lookup_.begins());
    std::vector<Task> tasks;
    tasks.push_back(allgather(h_, vectors_, base ? pipeline_of_differences() : pipeline_, unit_,
                              lookup_.keeps() ? this : nullptr, base ? &code : nullptr));
    if (lookup_.keeps()) tasks.push_back(keep_own());
    co_await all_of(tasks);
    lookup_.saved(code.saved());
    lookup_.written();
  }

  /// Keeps this rank's block, one piece at a time, while the network is busy.
  Task keep_own() {
    for (std::int64_t i = 0; i < pieces_in(own_.length(), pipeline_.piece); ++i) {
      const Range range = piece_of(own_, i, pipeline_.piece);
      if (std::byte* to = lookup_.memory_for(h_.node(), range)) vectors_.read(h_.node(), range, to);
      co_await pause();
    }
  }

  /// The delta of a piece is short and has its own message, with headers, so pieces are longer.
  PipelineSettings pipeline_of_differences() const noexcept {
    PipelineSettings pipeline = pipeline_;
    pipeline.in_flight = 2;
    pipeline.piece = std::max(pipeline.piece, std::min(8 * pipeline.piece, long_piece));
    return pipeline;
  }

  Hierarchy& h_;
  const RankBlocks& vectors_;
  PipelineSettings pipeline_;
  const Range own_;
  const OwnBytes own_bytes_;
  Lookup lookup_;
  std::int64_t unit_ = 2;  ///< cut at 16-bit words, so that a changed word lies in one piece
};

}  // namespace

Task cached_allgather(Hierarchy& hierarchy, const RankBlocks& vectors, CacheTable& table, Arena& arena,
                      PipelineSettings pipeline) {
  CachedAllgather work(hierarchy, vectors, table, arena, pipeline);
  co_await work.run();
}

}  // namespace bestride::inline collectives
