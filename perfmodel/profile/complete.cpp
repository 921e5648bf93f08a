// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/complete.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

namespace bestride::inline perfmodel {
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

/// Subtracts the transfer from pack + transfer. The result, pack alone, has no jumps. The result is at least 2 % of the
/// whole, because the difference may be below the noise.
void take_off(CostGrid& grid, const CostCurve& transfer) noexcept {
  for (int i = 0; i < bytes_points; ++i)
    for (float& value : grid.log_seconds[i]) {
      const double all = std::exp2(value);
      value = static_cast<float>(std::log2(std::max(all - transfer.at(static_cast<double>(bytes_at(i))), all * 0.02)));
    }
}

/// Completes one (call class, class) that has the minimum of points.
void complete_class(Measurements& measured, CallClass call_class, Shape::Class kind) noexcept {
  const auto at = [&](Engine engine, Spread spread, Leaf leaf) -> CostGrid& {
    return measured[{call_class, kind, engine, spread, leaf}];
  };
  using enum Spread;
  if (is_message(kind_of(call_class)))
    for (Spread spread : {dense, wide})
      take_off(at(Engine::kernel, spread, Leaf::eight), measured.curve(ContiguousForm::plain, call_class));
  fill(&at(Engine::kernel, dense, Leaf::eight));
  fill(&at(Engine::kernel, wide, Leaf::eight), &at(Engine::kernel, dense, Leaf::eight));
  fill(&at(Engine::split, dense, Leaf::eight));
  for (Leaf leaf : {Leaf::four, Leaf::mixed})
    fill(&at(Engine::split, dense, leaf), &at(Engine::split, dense, Leaf::eight));
  fill(&at(Engine::split, wide, Leaf::eight), &at(Engine::split, dense, Leaf::eight));
  for (Leaf leaf : {Leaf::four, Leaf::mixed}) {
    CostGrid& grid = at(Engine::split, wide, leaf);
    const CostGrid guess = shifted(at(Engine::split, wide, Leaf::eight), at(Engine::split, dense, leaf),
                                   at(Engine::split, dense, Leaf::eight));
    fill(&grid, &guess);
  }
  // Missing points of `unsplit` are assumed to be no better than `split`, so that respelling is not chosen there.
  for (Spread spread : {dense, wide})
    for (Leaf leaf : {Leaf::four, Leaf::eight, Leaf::mixed}) {
      CostGrid& grid = at(Engine::unsplit, spread, leaf);
      if (spread == wide && grid.measured() == 0 && at(Engine::unsplit, dense, leaf).measured() > 0) {
        const CostGrid guess =
            shifted(at(Engine::split, wide, leaf), at(Engine::unsplit, dense, leaf), at(Engine::split, dense, leaf));
        grid = guess;
      }
      fill(&grid, &at(Engine::split, spread, leaf));
    }
}

/// A plain message between two ranks is one experiment that is measured in the call classes of both endpoints. Each
/// call class gets the smaller value, and the other call class's value if its own is missing.
void share_plain_curves(Measurements& measured) noexcept {
  for (int at = 0; at < distance_count; ++at) {
    const auto distance = static_cast<Distance>(at);
    CostCurve& send = measured.curve(ContiguousForm::plain, call_class_of(CallKind::send, distance));
    CostCurve& receive = measured.curve(ContiguousForm::plain, call_class_of(CallKind::receive, distance));
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
    const CallClass node = call_class_of(call, Distance::node), network = call_class_of(call, Distance::network);
    measured->nests_scale[static_cast<std::size_t>(network)] = measured->nests_scale[static_cast<std::size_t>(node)];
    measured->built_in[static_cast<std::size_t>(network)] = measured->built_in[static_cast<std::size_t>(node)];
    const CostCurve& shared = measured->curve(ContiguousForm::plain, node);
    for (ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
      for (int i = 0; i < curve_points; ++i)
        measured->curve(form, network)
            .set(i, wire_latency + static_cast<double>(curve_bytes_at(i)) * wire_seconds_per_byte);
    for (int index = 0; index < grid_count; ++index) {
      GridKey key = grid_key(index);
      if (key.call_class != network) continue;
      key.call_class = node;
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

/// Between two ranks both call classes of a message are the same experiment, measured twice; the faster measurement was
/// disturbed less. Equal curves also let both endpoints of an exchange make the same choice.
void join_sides(Measurements* measured) noexcept {
  for (int at = 1; at < distance_count; ++at) {
    const auto distance = static_cast<Distance>(at);
    const CallClass send = call_class_of(CallKind::send, distance),
                    receive = call_class_of(CallKind::receive, distance);
    const auto join = [](float& x, float& y) noexcept { x = y = std::fmin(x, y); };  // fmin of a number and NaN is the
                                                                                     // number
    for (ContiguousForm form : {ContiguousForm::plain, ContiguousForm::respelled})
      for (std::size_t i = 0; i < std::size(measured->curve(form, send).log_seconds); ++i)
        join(measured->curve(form, send).log_seconds[i], measured->curve(form, receive).log_seconds[i]);
    for (int index = 0; index < grid_count; ++index) {
      GridKey key = grid_key(index);
      if (key.call_class != send) continue;
      CostGrid& one = (*measured)[key];
      key.call_class = receive;
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
  // Before anything is filled.
  std::array<bool, call_class_count> has_curve{};
  for (std::size_t l = 0; l < has_curve.size(); ++l)
    has_curve[l] = usable(measured->curve(ContiguousForm::plain, static_cast<CallClass>(l)));
  const auto enough = [&](CallClass call_class, Shape::Class kind) {
    return (has_curve[static_cast<std::size_t>(call_class)] || !is_message(kind_of(call_class))) &&
           (*measured)[{call_class, kind, Engine::split}].measured() >= min_points &&
           (*measured)[{call_class, kind, Engine::kernel}].measured() >= min_points;
  };
  const auto any_enough = [&](Distance distance) {
    for (const CallKind call : {CallKind::send, CallKind::receive, CallKind::isend})
      for (int c = 1; c <= class_count; ++c)
        if (enough(call_class_of(call, distance), static_cast<Shape::Class>(c))) return true;
    return false;
  };
  const bool network_is_derived = any_enough(Distance::node) && !any_enough(Distance::network);
  for (int l = 0; l < call_class_count; ++l) {
    const CallClass call_class = static_cast<CallClass>(l);
    if (network_is_derived && is_message(kind_of(call_class)) && distance_of(call_class) == Distance::network) continue;
    CostCurve& plain = measured->curve(ContiguousForm::plain, call_class);
    CostCurve& respelled = measured->curve(ContiguousForm::respelled, call_class);
    smooth(&plain);
    smooth(&respelled);
    const bool known = has_curve[static_cast<std::size_t>(l)];
    if (!known && l >= grid_class_count) {
      // Unknown at this near distance: as at `node`, without a gain from respelling.
      plain = respelled = measured->curve(ContiguousForm::plain, call_class_of(kind_of(call_class), Distance::node));
    } else if (!known) {
      plain = fallback.curve(ContiguousForm::plain, call_class);
      respelled = fallback.curve(ContiguousForm::respelled, call_class);
    }
    fill(&plain);
    if (usable(respelled))
      fill(&respelled);
    else
      respelled = plain;
    if (l >= grid_class_count) continue;
    bool loops = true;  ///< vectors and nests were both measured
    for (int c = 1; c <= class_count; ++c) {
      const auto kind = static_cast<Shape::Class>(c);
      if (enough(call_class, kind)) {
        complete_class(*measured, call_class, kind);
        continue;
      }
      measured->built_in[static_cast<std::size_t>(l)][static_cast<std::size_t>(c) - 1] = true;
      if (kind == Shape::Class::vector || kind == Shape::Class::nest) loops = false;
      for (int index = 0; index < grid_count; ++index) {
        const GridKey key = grid_key(index);
        if (key.call_class == call_class && key.kind == kind)
          measured->grids[static_cast<std::size_t>(index)] = fallback.grids[static_cast<std::size_t>(index)];
      }
    }
    measured->nests_scale[static_cast<std::size_t>(l)] = loops;
  }
  if (network_is_derived) derive_network(measured);
}

}  // namespace bestride::inline perfmodel
