// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

#include <algorithm>
#include <cstddef>

namespace halo3d {
namespace {

constexpr int never_written = -1;  // no value is negative

/// Odd factors and a fold spread neighbouring places over 23 bits, so that a shift by any cell, row, quantity or exchange shows.
template <class Real>
inline Real value_of(std::uint32_t row_seed, std::uint32_t x_term) {
  std::uint32_t mixed = (row_seed + x_term) * 0x9E3779B1u;
  mixed ^= mixed >> 15;
  return Real(std::int32_t(mixed >> 9));
}

std::uint32_t mix(std::uint32_t value) {
  value ^= value >> 16;
  value *= 0x7FEB352Du;
  value ^= value >> 15;
  value *= 0x846CA68Bu;
  return value ^ (value >> 16);
}

int index_of(const Triple& direction) { return (direction[0] + 1) * 9 + (direction[1] + 1) * 3 + direction[2] + 1; }

template <class Action>
void with_element(Element element, Action&& action) {
  element == Element::float32 ? action(float()) : action(double());
}

}  // namespace

Pattern::Pattern(const Grid& grid, Field& field, const Options& options)
    : grid_(grid), field_(field), exchanged_(options.quantities_exchanged()) {
  for (const Triple& direction : directions(options.neighbours))
    reachable_[index_of(direction)] = grid.neighbour(direction) != MPI_PROC_NULL;
  for (int x = 0; x < field.extents()[2]; ++x) x_terms_.push_back(along(2, x) * 0x85EBCA6Bu);
}

/// Position in the whole domain of the local position, halo included, wrapped around.
std::uint32_t Pattern::along(int dimension, int local) const {
  const long long cells = field_.cells()[dimension];
  const long long all = cells * grid_.ranks()[dimension];
  return std::uint32_t((cells * grid_.position()[dimension] + local - field_.radius() + all) % all);
}

std::uint32_t Pattern::row_seed(int z, int y, int quantity, int exchange) const {
  return mix(mix(mix(along(0, z) + 1) + along(1, y)) + std::uint32_t(quantity) * 0x10001u) + std::uint32_t(exchange) * 0xC2B2AE35u;
}

std::array<Pattern::Segment, 3> Pattern::segments(int z, int y, int quantity) const {
  const auto side = [&](int dimension, int local) {
    return local < field_.radius() ? -1 : local >= field_.radius() + field_.cells()[dimension] ? 1 : 0;
  };
  const int bounds[4] = {0, field_.radius(), field_.radius() + field_.cells()[2], field_.extents()[2]};
  std::array<Segment, 3> all;
  for (int x_side = -1; x_side <= 1; ++x_side) {
    const Triple direction = {side(0, z), side(1, y), x_side};
    const bool interior = direction == Triple{};
    all[x_side + 1] = {bounds[x_side + 1], bounds[x_side + 2], interior,
                       interior || (quantity < exchanged_ && reachable_[index_of(direction)])};
  }
  return all;
}

template <class Real>
Real* Pattern::row(int z, int y, int quantity) {
  const Triple& extents = field_.extents();
  const std::size_t cell = (std::size_t(z) * extents[1] + y) * extents[2];
  return reinterpret_cast<Real*>(field_.first(quantity)) + cell * field_.cell_stride();
}

void Pattern::clear() {
  with_element(field_.element(), [&](auto zero) {
    using Real = decltype(zero);
    for (int array = 0; array < field_.arrays(); ++array)
      std::fill_n(reinterpret_cast<Real*>(field_.array(array)), field_.array_elements(), Real(never_written));
  });
}

template <class Real>
void Pattern::update_as(int exchange) {
  const int radius = field_.radius(), stride = field_.cell_stride();
  for (int quantity = 0; quantity < field_.quantities(); ++quantity)
    for (int z = radius; z < radius + field_.cells()[0]; ++z)
      for (int y = radius; y < radius + field_.cells()[1]; ++y) {
        const std::uint32_t seed = row_seed(z, y, quantity, exchange);
        Real* values = row<Real>(z, y, quantity);
        for (int x = radius; x < radius + field_.cells()[2]; ++x)
          values[std::ptrdiff_t(x) * stride] = value_of<Real>(seed, x_terms_[x]);
      }
}

void Pattern::update(int exchange) {
  with_element(field_.element(), [&](auto zero) { update_as<decltype(zero)>(exchange); });
}

void Pattern::damage(int count) {
  with_element(field_.element(), [&](auto zero) {
    using Real = decltype(zero);
    for (int z = 0; z < field_.extents()[0]; ++z)
      for (int y = 0; y < field_.extents()[1]; ++y)
        for (const Segment& segment : segments(z, y, 0))
          for (int x = segment.begin; segment.filled && !segment.interior && x < segment.end; ++x)
            if (count > 0) --count, row<Real>(z, y, 0)[std::ptrdiff_t(x) * field_.cell_stride()] += Real(1);
  });
}

template <class Real>
void Pattern::check_as(int exchange, Count& count) {
  const int stride = field_.cell_stride();
  for (int quantity = 0; quantity < field_.quantities(); ++quantity)
    for (int z = 0; z < field_.extents()[0]; ++z)
      for (int y = 0; y < field_.extents()[1]; ++y) {
        const std::uint32_t seed = row_seed(z, y, quantity, exchange);
        const Real* values = row<Real>(z, y, quantity);
        for (const Segment& segment : segments(z, y, quantity)) {
          const auto expected = [&](int x) { return segment.filled ? value_of<Real>(seed, x_terms_[x]) : Real(never_written); };
          int wrong = 0;
          for (int x = segment.begin; x < segment.end; ++x) wrong += values[std::ptrdiff_t(x) * stride] != expected(x);
          (segment.filled && !segment.interior ? count.halo_checked : count.other_checked) += segment.end - segment.begin;
          count.wrong += wrong;
          if (!wrong || !count.first_wrong.empty()) continue;
          int x = segment.begin;
          while (values[std::ptrdiff_t(x) * stride] == expected(x)) ++x;
          count.first_wrong = "rank " + std::to_string(grid_.rank()) + ", exchange " + std::to_string(exchange) + ", quantity " +
                              std::to_string(quantity) + ", local cell x=" + std::to_string(x) + " y=" + std::to_string(y) +
                              " z=" + std::to_string(z) + " (halo included): holds " +
                              std::to_string(values[std::ptrdiff_t(x) * stride]) + ", must hold " + std::to_string(expected(x));
        }
      }
}

template <class Real>
void Pattern::check_guards(Count& count) {
  for (int array = 0; array < field_.arrays(); ++array) {
    const Real* begin = reinterpret_cast<const Real*>(field_.array(array));
    const Real* back = begin + field_.array_elements() - Field::guard;
    for (std::size_t at = 0; at < Field::guard; ++at) {
      const bool wrong = begin[at] != Real(never_written) || back[at] != Real(never_written);
      count.wrong += wrong;
      if (wrong && count.first_wrong.empty())
        count.first_wrong = "rank " + std::to_string(grid_.rank()) + ": written outside array " + std::to_string(array);
    }
    count.other_checked += 2 * std::int64_t(Field::guard);
  }
}

void Pattern::check(int exchange, Count& count) {
  with_element(field_.element(), [&](auto zero) {
    check_as<decltype(zero)>(exchange, count);
    check_guards<decltype(zero)>(count);
  });
}

}  // namespace halo3d
