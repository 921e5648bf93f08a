// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/chooser.hpp"

#include <algorithm>
#include <limits>

namespace bestride {

namespace {

/// From this mean block length on, a message is not respelled: MPI's engine is not bound by blocks there. Measured on MPICH 4.0.2,
/// 16 KiB to 1 MiB: at most 1.1 to gain, and down to 0.6 for long blocks of 4-byte basic types, which its whole-element path
/// moves one by one.
constexpr std::int64_t long_block = 256;

}  // namespace

double overhead_seconds(Strategy strategy, CallKind kind) noexcept {
  if (!is_message(kind) || strategy == Strategy::forward) return 0;
  const bool cold = kind == in_exchange(kind);
  return strategy == Strategy::pack ? (cold ? 1500e-9 : 80e-9) : cold ? 300e-9 : 20e-9;
}

Choice Chooser::choose(const Shape& shape, CallKind kind, Distance distance, Allowed allowed) const noexcept {
  constexpr double never = std::numeric_limits<double>::infinity();
  Choice choice;
  choice.seconds = profile_->seconds(shape, kind, distance);
  auto& [forward, respell, pack] = choice.seconds;
  if (!allowed.pack) pack = never;
  if (!allowed.respell || (shape.kind != Shape::Class::contiguous && shape.block_bytes >= long_block)) respell = never;
  pack += overhead_seconds(Strategy::pack, kind);
  respell += overhead_seconds(Strategy::respell, kind);
  double least = forward * (1 - (is_message(kind) ? margin_ : std::min(margin_, local_margin)));
  for (Strategy other : {Strategy::respell, Strategy::pack}) {
    const double seconds = choice.seconds[static_cast<std::size_t>(other)];
    if (seconds >= least) continue;
    least = seconds;
    choice.strategy = other;
  }
  return choice;
}

Strategy Chooser::wire(std::int64_t bytes, CallKind kind, Distance distance) const noexcept {
  Shape shape;
  shape.bytes = shape.element_bytes = bytes;
  return choose(shape, kind, distance, {.respell = true, .pack = false}).strategy;
}

}  // namespace bestride
