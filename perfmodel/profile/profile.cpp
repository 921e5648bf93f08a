// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/profile/profile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "perfmodel/collective/one_node.hpp"
#include "perfmodel/host/position.hpp"

namespace bestride::inline perfmodel {
namespace {

/// A loop of at least this many bytes is divided by every fragment. For MPICH over UCX; inferred from the size at which
/// derived types become slow, between 6.5 and 12 KiB.
constexpr double fragment_bytes = 8192;
/// The position in the grids of MPI's engines. The limit of eager messages is between two points of the bytes axis, 4
/// and 16 KiB, so each side of it is extrapolated from the two points on that side.
AxisPosition beside_eager_limit(AxisPosition at, std::int64_t bytes) noexcept {
  constexpr int below = 3;  ///< the last point that is sent eagerly
  static_assert(bytes_at(below) < eager_bytes && eager_bytes < bytes_at(below + 1));
  if (at.index != below || at.weight == 0) return at;
  return bytes <= eager_bytes ? AxisPosition{below - 1, at.weight + 1, 0} : AxisPosition{below + 1, at.weight - 1, 0};
}

/// Nests are measured with this many inner iterations. Their extra cost over a vector is the cost of starting inner
/// loops.
constexpr double measured_inner_count = 8;

}  // namespace

CallClass call_class_of(CallKind kind, Distance distance) noexcept {
  using enum CallClass;
  constexpr CallClass classes[][distance_count] = {
      {send_self, send_cache, send_domain, send_socket, send_node, send_network},
      {receive_self, receive_cache, receive_domain, receive_socket, receive_node, receive_network},
      {exchange_self, exchange_cache, exchange_domain, exchange_socket, exchange_node, exchange_network},
  };
  switch (kind) {
    case CallKind::pack: return pack;
    case CallKind::unpack: return unpack;
    case CallKind::send: return classes[0][static_cast<int>(distance)];
    case CallKind::receive: return classes[1][static_cast<int>(distance)];
    case CallKind::isend:
    case CallKind::irecv: return classes[2][static_cast<int>(distance)];
  }
  return pack;
}

namespace {

struct ClassMeaning {
  CallKind kind = CallKind::pack;
  Distance distance = Distance::self;
};

/// The inverse of call_class_of.
constinit const std::array<ClassMeaning, call_class_count> meanings = []() consteval {
  using enum CallKind;
  using enum Distance;
  return std::array<ClassMeaning, call_class_count>{{
      {CallKind::pack, self}, {unpack, self},    {send, self},       {send, node},    {send, network},
      {receive, self},        {receive, node},   {receive, network}, {isend, self},   {isend, node},
      {isend, network},       {send, cache},     {send, domain},     {send, socket},  {receive, cache},
      {receive, domain},      {receive, socket}, {isend, cache},     {isend, domain}, {isend, socket},
  }};
}
();

}  // namespace

CallKind kind_of(CallClass call_class) noexcept { return meanings[static_cast<std::size_t>(call_class)].kind; }

Distance distance_of(CallClass call_class) noexcept { return meanings[static_cast<std::size_t>(call_class)].distance; }

int grid_index(const GridKey& key) noexcept {
  const int leaf = key.engine == Engine::kernel ? static_cast<int>(Leaf::eight) : static_cast<int>(key.leaf);
  int index = static_cast<int>(key.call_class);
  index = index * class_count + static_cast<int>(key.kind) - 1;
  index = index * spread_count + static_cast<int>(key.spread);
  index = index * engine_count + static_cast<int>(key.engine);
  return index * leaf_count + leaf;
}

GridKey grid_key(int index) noexcept {
  GridKey key;
  key.leaf = static_cast<Leaf>(index % leaf_count);
  index /= leaf_count;
  key.engine = static_cast<Engine>(index % engine_count);
  index /= engine_count;
  key.spread = static_cast<Spread>(index % spread_count);
  index /= spread_count;
  key.kind = static_cast<Shape::Class>(index % class_count + 1);
  key.call_class = static_cast<CallClass>(index / class_count);
  return key;
}

bool built_in_curves_are_of(std::string_view mpi_library) noexcept {
  return one_node_library(mpi_library) == OneNodeLibrary::mpich_4_0;
}

bool MachineProfile::predicts_by_built_in(Shape::Class kind, CallKind call, Distance distance) const noexcept {
  if (kind == Shape::Class::contiguous) return false;  // without measurements no form gains
  const CallClass call_class = call_class_of(call, without_processors(distance));
  return curves_->built_in[static_cast<std::size_t>(call_class)][static_cast<std::size_t>(kind) - 1];
}

double MachineProfile::contiguous_seconds(double bytes, ContiguousForm form, CallClass call_class) const noexcept {
  return curves_->curve(form, call_class).at(bytes);
}

std::array<double, strategy_count> MachineProfile::seconds(const Shape& shape, CallKind kind,
                                                           Distance distance) const noexcept {
  constexpr double never = std::numeric_limits<double>::infinity();
  std::array<double, strategy_count> result;
  result.fill(never);
  result[static_cast<int>(Strategy::forward)] = 0;
  const CallClass call_class = call_class_of(kind, distance);
  if (shape.bytes <= 0) return result;
  const AxisPosition on_curve = on_curve_axis(static_cast<double>(shape.bytes));
  const double plain = std::exp2(curves_->curve(ContiguousForm::plain, call_class).log_at(on_curve));
  const double respelled =
      is_message(kind) ? std::exp2(curves_->curve(ContiguousForm::respelled, call_class).log_at(on_curve)) : never;
  if (shape.kind == Shape::Class::contiguous) {
    result[static_cast<int>(Strategy::forward)] = plain;
    result[static_cast<int>(Strategy::respell)] = respelled;
    return result;
  }
  // A near class has no grids.
  if (is_near(distance)) return seconds(shape, kind, Distance::node);
  const Position position = position_of(shape);
  const AxisPosition by_mpi =
      is_message(kind) && distance == Distance::node ? beside_eager_limit(position.bytes, shape.bytes) : position.bytes;
  const auto measured = [&](Shape::Class of, Engine engine, Leaf leaf) noexcept {
    const AxisPosition bytes = engine == Engine::kernel ? position.bytes : by_mpi;
    const float dense = grid({call_class, of, engine, Spread::dense, leaf}).log_at(bytes, position.block);
    if (position.wide == 0) return std::exp2(dense);
    const float wide = grid({call_class, of, engine, Spread::wide, leaf}).log_at(bytes, position.block);
    return std::exp2(dense + (wide - dense) * position.wide);
  };
  const auto engine_seconds = [&](Engine engine, Leaf leaf) noexcept -> double {
    if (shape.kind != Shape::Class::nest || !curves_->nests_scale[static_cast<std::size_t>(call_class)])
      return measured(shape.kind, engine, leaf);
    const double vector = measured(Shape::Class::vector, engine, leaf);
    const double nest = measured(Shape::Class::nest, engine, leaf);
    // Not less than a vector: with few inner iterations, noise would be multiplied.
    return vector + std::max(0.0, nest - vector) * measured_inner_count / static_cast<double>(shape.inner_count);
  };
  const auto positive = [](double seconds) noexcept { return std::max(seconds, 1e-9); };

  result[static_cast<int>(Strategy::pack)] = positive(engine_seconds(Engine::kernel, Leaf::eight));
  const double split = positive(engine_seconds(Engine::split, shape.leaf));
  if (!is_message(kind)) {
    result[static_cast<int>(Strategy::forward)] = split;
    return result;
  }
  result[static_cast<int>(Strategy::pack)] += std::min(plain, respelled);
  const double unsplit = positive(engine_seconds(Engine::unsplit, shape.leaf));
  const auto of_units = [&](double unit_bytes) noexcept {
    return unsplit + (split - unsplit) * std::min(1.0, unit_bytes / fragment_bytes);
  };
  result[static_cast<int>(Strategy::forward)] = of_units(static_cast<double>(shape.unit_bytes));
  result[static_cast<int>(Strategy::respell)] =
      of_units(static_cast<double>(shape.bytes) / static_cast<double>(std::max<std::int64_t>(1, shape.outer_count)));
  return result;
}

}  // namespace bestride::inline perfmodel
