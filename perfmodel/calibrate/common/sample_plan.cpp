// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/calibrate/common/sample_plan.hpp"

#include <algorithm>

namespace bestride::inline perfmodel {
namespace {

constexpr std::int64_t largest_footprint = std::int64_t{256} << 20;
constexpr std::int64_t largest_list = 1 << 20;
/// Not a power of two, because equally spaced blocks at such a distance use only few sets of the caches.
constexpr std::int64_t wide_stride = wide_jump + 64;
/// Two iterations of the outer loop over the 8 of the inner loop that nests are measured with.
constexpr std::int64_t min_nest_blocks = 16;

bool contains(std::initializer_list<int> values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Indices on the axes: bytes 0..9 are 64 B..16 MiB; blocks 0..7 are 4, 8, 16, 32, 64, 256, 1024, 4096 B.
int level_of(const Point& p) {
  const bool self = is_message(kind_of(p.call_class)) && distance_of(p.call_class) == Distance::self;
  const bool coarse_bytes = contains({1, 3, 5, 7}, p.bytes_index), coarse_block = contains({1, 4, 6}, p.block_index);
  int level = 4;
  if (p.kind == Shape::Class::contiguous) return 0;
  if (p.spread == Spread::dense) {
    if (coarse_bytes && coarse_block)
      level = 0;
    else if (p.bytes_index >= 1 && p.bytes_index <= 7 && contains({1, 2, 4, 6}, p.block_index))
      level = 1;
    else if (p.bytes_index >= 1 && p.bytes_index <= 8 && contains({0, 1, 2, 4, 5, 6}, p.block_index))
      level = 2;
    else
      level = p.bytes_index <= 8 ? 3 : 4;
  } else {
    level = coarse_bytes && contains({1, 4}, p.block_index)               ? 1
            : contains({1, 2, 4, 5}, p.block_index) && p.bytes_index <= 8 ? 3
                                                                          : 4;
  }
  return self ? std::min(level + 1, level_count - 1) : level;
}

bool exists(const Point& p) {
  const std::int64_t blocks = p.bytes() / p.block();
  if (blocks < 2 || footprint_of(p) > largest_footprint) return false;
  if (p.kind == Shape::Class::nest && blocks < min_nest_blocks) return false;
  if (p.kind == Shape::Class::record && blocks < 6) return false;
  if (p.kind == Shape::Class::list && (blocks < 16 || blocks > largest_list)) return false;
  return p.spread == Spread::dense || 2 * p.block() < wide_jump;
}

}  // namespace

std::string Point::id() const {
  return std::string(name(call_class)) + "." + std::string(name(kind)) + "." + std::string(name(spread)) + "." +
         std::to_string(bytes_index) + "." + std::to_string(block_index);
}

std::string Point::text() const {
  const std::string start = std::string(name(call_class)) + ", " + std::string(name(kind)) + ", ";
  const std::string size = std::to_string(bytes()) + " B";
  return kind == Shape::Class::contiguous ? start + size
                                          : start + size + " in blocks of " + std::to_string(block()) + " B";
}

std::int64_t jump_of(Spread spread, std::int64_t block) noexcept {
  return spread == Spread::dense ? 2 * block : wide_stride;
}

std::int64_t footprint_of(const Point& point) {
  return point.bytes() / point.block() * jump_of(point.spread, point.block());
}

std::vector<Series> series_at(const Point& point) {
  std::vector<Series> series;
  if (point.kind == Shape::Class::contiguous) return series;
  series.push_back({Engine::kernel, Leaf::eight});
  // A few points of the other leaves are enough; the rest is computed from their ratio to `eight`.
  const bool eight = point.block() >= 8;
  const bool four = point.block_index == 0 || contains({2, 4, 6}, point.block_index);
  const bool mixed = contains({1, 2, 4}, point.block_index);
  const bool elements = is_message(kind_of(point.call_class)) && point.kind != Shape::Class::list;
  const auto add = [&](Leaf leaf) {
    series.push_back({Engine::split, leaf});
    if (elements) series.push_back({Engine::unsplit, leaf});
  };
  if (eight) add(Leaf::eight);
  if (four) add(Leaf::four);
  if (mixed) add(Leaf::mixed);
  return series;
}

std::vector<Point> make_plan(const PlanOptions& options) {
  std::vector<Point> plan;
  if (!options.messages) return plan;
  const int levels = options.depth == Depth::quick      ? quick_levels
                     : options.depth == Depth::standard ? standard_levels
                                                        : level_count;
  const Distance peer = options.near ? *options.near : options.network ? Distance::network : Distance::node;
  const CallClass send_peer = call_class_of(CallKind::send, peer);
  const CallClass exchange_peer = call_class_of(CallKind::isend, peer);
  const auto wanted = [&](CallClass call_class) {
    if (options.only.empty()) return true;
    return std::any_of(options.only.begin(), options.only.end(), [&](CallKind kind) {
      // Between two ranks one measurement serves both endpoints.
      return kind == kind_of(call_class) || (kind == CallKind::receive && call_class == send_peer) ||
             (kind == CallKind::irecv && is_exchange(call_class));
    });
  };
  for (CallClass call_class : {CallClass::pack, CallClass::unpack, send_peer, exchange_peer, CallClass::send_self,
                               CallClass::receive_self, CallClass::exchange_self}) {
    if (!wanted(call_class) || (options.near && call_class != send_peer && call_class != exchange_peer)) continue;
    for (int i = 0; i < curve_points; ++i)
      plan.push_back({call_class, Shape::Class::contiguous, Spread::dense, i, 0, 0});
    if (options.near) continue;
    for (int c = 1; c <= class_count; ++c)
      for (Spread spread : {Spread::dense, Spread::wide})
        for (int i = 0; i < bytes_points; ++i)
          for (int k = 0; k < block_points; ++k) {
            Point point{call_class, static_cast<Shape::Class>(c), spread, i, k, 0};
            if (!exists(point)) continue;
            point.level = level_of(point);
            if (point.level < levels) plan.push_back(point);
          }
  }
  std::stable_sort(plan.begin(), plan.end(), [](const Point& a, const Point& b) { return a.level < b.level; });
  return plan;
}

}  // namespace bestride::inline perfmodel
