// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/choose/chooser.hpp"

#include <algorithm>
#include <limits>

namespace bestride::inline perfmodel {

namespace {

/// Messages to another rank with at least this mean block length are left to MPI, because its engine is not limited by
/// the number of blocks there. Measured on MPICH 4.0.2:
///
/// Respelled, 16 KiB to 1 MiB: a gain of at most 1.1, and down to 0.6 for long blocks of 4-byte basic types, which
/// MPICH's path for whole elements moves one by one.
///
/// Packed: the difference comes not from the engine but from the protocol for contiguous bytes, which depends on the
/// cores that the two ranks run on: 512-byte blocks, 1 MiB, were 1.5 times as fast between one pair of cores and 0.42
/// between another. Packed bytes that are passed as an equivalent datatype use the engine's own protocol and are no
/// riskier than shorter blocks. The same holds for short messages, which are sent eagerly in any form (888-byte blocks,
/// 6 KiB: 2.7 times as fast). For the same reason an equivalent datatype for short contiguous bytes gains nothing.
///
/// To the rank itself packed ones gained at no measured size; interpolation across the end of a cache predicts it.
constexpr std::int64_t long_block = 256;
/// From this block length on the difference between protocols is as large as the engine's cost, so packing must be
/// predicted to be twice as fast.
constexpr std::int64_t middling_block = 128;
constexpr double middling_margin = 0.5;

/// True if every block is in its own cache line, and the lines are evicted before they are reused: distances near a
/// multiple of 2 KiB use one set in 32, so 16384 such lines exceed 32 MiB of cache. Memory then limits all strategies
/// alike (x faces of 256 and 512 cubed: 20 ns for each block forwarded, respelled and packed; 3.4 ns predicted from
/// distances of 2112 bytes), and the engine at least overlaps the cache misses of both ranks.
bool bound_by_memory(const Shape& shape) noexcept {
  constexpr std::int64_t line = 64, resonance = 2048;
  const std::int64_t beyond = shape.jump % resonance;
  return shape.blocks >= 16384 && shape.block_bytes <= line && shape.jump >= resonance - line &&
         std::min(beyond, resonance - beyond) <= line && shape.footprint / line >= 8 * shape.blocks;
}

/// Packing such a message was at least 1.3 times as fast as leaving it to MPI with every MPI library that was measured:
/// MPICH 4.0.2, MPICH 5.0.2, Intel MPI 2021.18 (docs/decisions/other_libraries.md). Only with short blocks, because
/// there every library's engine is limited by their number. Not for nests of loops, where the engine of MPICH 5 is as
/// fast as ours, and not for short lists, which it packs on the way into shared memory.
bool gains_packed_with_any_library(const Shape& shape) noexcept {
  if (shape.block_bytes > 64) return false;
  switch (shape.kind) {
    case Shape::Class::vector: return shape.bytes > eager_bytes;
    case Shape::Class::record: return shape.bytes >= 768;
    case Shape::Class::list: return shape.bytes >= 32 * 1024;
    default: return false;
  }
}

}  // namespace

double overhead_seconds(Strategy strategy, CallKind kind) noexcept {
  if (!is_message(kind) || strategy == Strategy::forward) return 0;
  const bool cold = kind == in_exchange(kind);
  return strategy == Strategy::pack ? (cold ? 1500e-9 : 80e-9) : cold ? 300e-9 : 20e-9;
}

double Chooser::margin(const Shape& shape, CallKind kind, Distance distance) const noexcept {
  if (!is_message(kind)) return std::min(margin_, local_margin);
  const bool middling = shape.kind != Shape::Class::contiguous && distance != Distance::self &&
                        shape.bytes > eager_bytes && shape.block_bytes >= middling_block;
  return middling && contiguous_strategy(shape.bytes, kind, distance) == Strategy::forward
             ? std::max(margin_, middling_margin)
             : margin_;
}

Choice Chooser::choose(const Shape& shape, CallKind kind, Distance distance, Allowed allowed) const noexcept {
  constexpr double never = std::numeric_limits<double>::infinity();
  Choice choice;
  const bool gaps = shape.kind != Shape::Class::contiguous;
  if (gaps) distance = without_processors(distance);
  choice.seconds = profile_->seconds(shape, kind, distance);
  auto& [forward, respell, pack] = choice.seconds;
  if (!allowed.pack) pack = never;
  const bool far = is_message(kind) && distance != Distance::self;
  if (!allowed.respell || (gaps ? shape.block_bytes >= long_block : shape.bytes <= eager_bytes)) respell = never;
  if (gaps && is_message(kind) && shape.bytes > eager_bytes && shape.block_bytes >= long_block &&
      (distance == Distance::self || contiguous_strategy(shape.bytes, kind, distance) == Strategy::forward))
    pack = never;
  if (far && kind != in_exchange(kind) && bound_by_memory(shape)) pack = respell = never;
  if (!library_known_ && is_message(kind) && profile_->predicts_by_built_in(shape.kind, kind, distance)) {
    respell = never;
    if (!gains_packed_with_any_library(shape)) pack = never;
  }
  pack += overhead_seconds(Strategy::pack, kind);
  respell += overhead_seconds(Strategy::respell, kind);
  double least = forward * (1 - margin(shape, kind, distance));
  for (Strategy other : {Strategy::respell, Strategy::pack}) {
    const double seconds = choice.seconds[static_cast<std::size_t>(other)];
    if (seconds >= least) continue;
    least = seconds;
    choice.strategy = other;
  }
  return choice;
}

Strategy Chooser::contiguous_strategy(std::int64_t bytes, CallKind kind, Distance distance) const noexcept {
  Shape shape;
  shape.bytes = shape.unit_bytes = bytes;
  return choose(shape, kind, distance, {.respell = true, .pack = false}).strategy;
}

std::int64_t Chooser::respell_contiguous_from(std::initializer_list<Distance> distances) const noexcept {
  for (std::int64_t bytes = eager_bytes + 1; bytes <= std::int64_t{1} << 30; bytes += bytes / 8)
    for (const CallKind kind : {CallKind::send, CallKind::receive, CallKind::isend})
      for (const Distance distance : distances)
        if (contiguous_strategy(bytes, kind, distance) == Strategy::respell) return bytes;
  return 0;
}

}  // namespace bestride::inline perfmodel
