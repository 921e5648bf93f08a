// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/collective/one_node_measurements.hpp"

#include <algorithm>
#include <cmath>

namespace bestride::inline perfmodel {

std::string OneNodeCall::id() const {
  switch (kind) {
    case Kind::barrier: return "barrier";
    case Kind::neighbors: return "neighbor_alltoall";
    case Kind::collective: break;
  }
  return (blocking ? "" : "nonblocking_") + std::string(name(what));
}

bool OneNodeCurve::any() const noexcept {
  return std::any_of(shared.begin(), shared.end(), [](float seconds) { return !std::isnan(seconds); });
}

OneNodeBounds OneNodeCurve::bounds() const noexcept {
  constexpr double margin = 0.03;
  double best = 0, sum = 0;
  std::size_t start = 0, first = 0, last = 0;
  for (std::size_t i = 0; i < one_node_bytes.size(); ++i) {
    if (std::isnan(shared[i]) || std::isnan(library[i])) continue;
    const double gain = std::log(static_cast<double>(library[i]) / static_cast<double>(shared[i])) - margin;
    if (sum <= 0) sum = 0, start = i;
    sum += gain;
    if (sum > best) best = sum, first = start, last = i;
  }
  if (best <= 0) return {};
  return {first == 0 ? 0 : one_node_bytes[first],
          last + 1 == one_node_bytes.size() ? OneNodeBounds::unbounded : one_node_bytes[last]};
}

OneNodeLimits limits_of(const OneNodeMeasurements& measured, const OneNodeLimits& otherwise) noexcept {
  OneNodeLimits limits = otherwise;
  if (!measured.any()) return limits;
  const auto everywhere = [](const OneNodeBounds& bounds) {
    return bounds.least == 0 && bounds.most == OneNodeBounds::unbounded;
  };
  for (std::size_t i = 0; i < one_node_calls.size(); ++i) {
    const OneNodeCall& call = one_node_calls[i];
    const OneNodeCurve& curve = measured.curves[i];
    if (!curve.any()) continue;
    const OneNodeBounds bounds = curve.bounds();
    if (call.kind == OneNodeCall::Kind::barrier) limits.barriers = bounds.any();
    if (call.kind == OneNodeCall::Kind::neighbors) limits.neighbors = everywhere(bounds);
    if (call.kind != OneNodeCall::Kind::collective) continue;
    OneNodeLimits::Table& table = call.blocking ? limits.blocking : limits.nonblocking;
    table[static_cast<std::size_t>(call.what)] = bounds;
    if (call.what == Collective::allgather) table[static_cast<std::size_t>(Collective::allgatherv)] = bounds;
  }
  limits.varying = everywhere(limits.blocking[static_cast<std::size_t>(Collective::allgather)]) &&
                   everywhere(limits.blocking[static_cast<std::size_t>(Collective::gather)]) &&
                   everywhere(limits.blocking[static_cast<std::size_t>(Collective::scatter)]);
  return limits;
}

}  // namespace bestride::inline perfmodel
