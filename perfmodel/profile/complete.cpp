// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/complete.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace bestride {
namespace {

constexpr double wire_latency = 2e-6;
constexpr double wire_seconds_per_byte = 1 / 3.125e9;

/// a + (b - c) in seconds, not less than a: if b costs more than c, a is raised by the difference.
CostGrid shifted(const CostGrid& a, const CostGrid& b, const CostGrid& c) noexcept {
  CostGrid result;
  for (int i = 0; i < bytes_points; ++i)
    for (int k = 0; k < block_points; ++k) {
      const double base = std::exp2(a.log_seconds[i][k]);
      result.set(i, k, std::max(base, base + std::exp2(b.log_seconds[i][k]) - std::exp2(c.log_seconds[i][k])));
    }
  return result;
}

/// Subtracts the transfer from pack + transfer. The result, pack alone, has no jumps. A difference below the noise
/// counts as 2 % of the whole.
void take_off(CostGrid& grid, const CostCurve& transfer) noexcept {
  for (int i = 0; i < bytes_points; ++i)
    for (float& value : grid.log_seconds[i]) {
      const double all = std::exp2(value);
      value = static_cast<float>(std::log2(std::max(all - transfer.at(static_cast<double>(bytes_at(i))), all * 0.02)));
    }
}

/// Completes one (lane, class) that has the minimum of points.
void complete_class(Measurements& measured, Lane lane, Shape::Class kind) noexcept {
  const auto at = [&](Engine engine, Spread spread, Leaf leaf) -> CostGrid& {
    return measured[{lane, kind, engine, spread, leaf}];
  };
  using enum Spread;
  if (is_message(kind_of(lane)))
    for (Spread spread : {dense, wide})
      take_off(at(Engine::kernel, spread, Leaf::eight), measured.curve(Wire::plain, lane));
  fill(&at(Engine::kernel, dense, Leaf::eight));
  fill(&at(Engine::kernel, wide, Leaf::eight), &at(Engine::kernel, dense, Leaf::eight));
  fill(&at(Engine::broken, dense, Leaf::eight));
  for (Leaf leaf : {Leaf::four, Leaf::mixed})
    fill(&at(Engine::broken, dense, leaf), &at(Engine::broken, dense, Leaf::eight));
  fill(&at(Engine::broken, wide, Leaf::eight), &at(Engine::broken, dense, Leaf::eight));
  for (Leaf leaf : {Leaf::four, Leaf::mixed}) {
    CostGrid& grid = at(Engine::broken, wide, leaf);
    const CostGrid guess = shifted(at(Engine::broken, wide, Leaf::eight), at(Engine::broken, dense, leaf),
                                   at(Engine::broken, dense, Leaf::eight));
    fill(&grid, &guess);
  }
  // Missing points of `whole` are assumed to be no better than `broken`, so that respelling is not chosen there.
  for (Spread spread : {dense, wide})
    for (Leaf leaf : {Leaf::four, Leaf::eight, Leaf::mixed}) {
      CostGrid& grid = at(Engine::whole, spread, leaf);
      if (spread == wide && grid.measured() == 0 && at(Engine::whole, dense, leaf).measured() > 0) {
        const CostGrid guess =
            shifted(at(Engine::broken, wide, leaf), at(Engine::whole, dense, leaf), at(Engine::broken, dense, leaf));
        grid = guess;
      }
      fill(&grid, &at(Engine::broken, spread, leaf));
    }
}

/// A plain message between two ranks is one experiment that is measured in the lanes of both endpoints. Each lane gets
/// the smaller value, and the other lane's value if its own is missing.
void share_plain_curves(Measurements& measured) noexcept {
  for (Distance distance : {Distance::self, Distance::node, Distance::network}) {
    CostCurve& send = measured.curve(Wire::plain, lane_of(CallKind::send, distance));
    CostCurve& receive = measured.curve(Wire::plain, lane_of(CallKind::receive, distance));
    for (int i = 0; i < curve_points; ++i) {
      const float least = std::fmin(send.log_seconds[i], receive.log_seconds[i]);  // fmin of a number and NaN is the
                                                                                   // number
      send.log_seconds[i] = receive.log_seconds[i] = least;
    }
  }
}

/// True if a curve can be filled: it has enough points, including short messages.
bool usable(const CostCurve& curve) noexcept {
  int points = 0, first = curve_points;
  for (int i = curve_points - 1; i >= 0; --i)
    if (!std::isnan(curve.log_seconds[i])) ++points, first = i;
  return points >= min_points && curve_bytes_at(first) <= 1024;
}

}  // namespace

void derive_network(Measurements* measured) noexcept {
  for (CallKind call : {CallKind::send, CallKind::receive, CallKind::isend}) {
    const Lane node = lane_of(call, Distance::node), network = lane_of(call, Distance::network);
    measured->nests_scale[static_cast<std::size_t>(network)] = measured->nests_scale[static_cast<std::size_t>(node)];
    const CostCurve& shared = measured->curve(Wire::plain, node);
    for (Wire wire : {Wire::plain, Wire::respelled})
      for (int i = 0; i < curve_points; ++i)
        measured->curve(wire, network)
            .set(i, wire_latency + static_cast<double>(curve_bytes_at(i)) * wire_seconds_per_byte);
    for (int index = 0; index < grid_count; ++index) {
      GridKey key = grid_key(index);
      if (key.lane != network) continue;
      key.lane = node;
      const CostGrid& from = (*measured)[key];
      CostGrid& to = measured->grids[static_cast<std::size_t>(index)];
      if (key.engine == Engine::kernel) {
        to = from;
        continue;
      }
      for (int i = 0; i < bytes_points; ++i)
        for (int k = 0; k < block_points; ++k) {
          const double bytes = static_cast<double>(bytes_at(i));
          const double work = std::exp2(from.log_seconds[i][k]) - shared.at(bytes);
          to.set(i, k, wire_latency + std::max(bytes * wire_seconds_per_byte, work));
        }
    }
  }
}

namespace {

/// Between two ranks both lanes of a message are the same experiment, measured twice; the faster measurement was
/// disturbed less. Equal curves also let both endpoints of an exchange make the same choice.
void join_sides(Measurements* measured) noexcept {
  for (Distance distance : {Distance::node, Distance::network}) {
    const Lane send = lane_of(CallKind::send, distance), receive = lane_of(CallKind::receive, distance);
    const auto join = [](float& x, float& y) noexcept { x = y = std::fmin(x, y); };  // fmin of a number and NaN is the
                                                                                     // number
    for (Wire wire : {Wire::plain, Wire::respelled})
      for (std::size_t i = 0; i < std::size(measured->curve(wire, send).log_seconds); ++i)
        join(measured->curve(wire, send).log_seconds[i], measured->curve(wire, receive).log_seconds[i]);
    for (int index = 0; index < grid_count; ++index) {
      GridKey key = grid_key(index);
      if (key.lane != send) continue;
      CostGrid& one = (*measured)[key];
      key.lane = receive;
      CostGrid& other = (*measured)[key];
      for (int i = 0; i < bytes_points; ++i)
        for (int k = 0; k < block_points; ++k) join(one.log_seconds[i][k], other.log_seconds[i][k]);
    }
  }
}

}  // namespace

void complete(Measurements* measured, const Measurements& fallback) noexcept {
  join_sides(measured);
  for (CostGrid& grid : measured->grids) smooth(&grid);
  share_plain_curves(*measured);
  bool node = false, network = false;
  for (int l = 0; l < lane_count; ++l) {
    const Lane lane = static_cast<Lane>(l);
    CostCurve& plain = measured->curve(Wire::plain, lane);
    CostCurve& respelled = measured->curve(Wire::respelled, lane);
    smooth(&plain);
    smooth(&respelled);
    const bool has_curve = usable(plain);
    if (!has_curve) {
      plain = fallback.curve(Wire::plain, lane);
      respelled = fallback.curve(Wire::respelled, lane);
    }
    fill(&plain);
    if (usable(respelled))
      fill(&respelled);
    else
      respelled = plain;
    bool loops = true;  ///< vectors and nests were both measured
    for (int c = 1; c <= class_count; ++c) {
      const auto kind = static_cast<Shape::Class>(c);
      const bool enough = (has_curve || !is_message(kind_of(lane))) &&
                          (*measured)[{lane, kind, Engine::broken}].measured() >= min_points &&
                          (*measured)[{lane, kind, Engine::kernel}].measured() >= min_points;
      if (enough) {
        complete_class(*measured, lane, kind);
        node |= is_message(kind_of(lane)) && distance_of(lane) == Distance::node;
        network |= is_message(kind_of(lane)) && distance_of(lane) == Distance::network;
        continue;
      }
      if (kind == Shape::Class::vector || kind == Shape::Class::nest) loops = false;
      for (int index = 0; index < grid_count; ++index) {
        const GridKey key = grid_key(index);
        if (key.lane == lane && key.kind == kind)
          measured->grids[static_cast<std::size_t>(index)] = fallback.grids[static_cast<std::size_t>(index)];
      }
    }
    measured->nests_scale[static_cast<std::size_t>(l)] = loops;
  }
  if (node && !network) derive_network(measured);
}

}  // namespace bestride
