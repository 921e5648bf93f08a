// SPDX-License-Identifier: Apache-2.0
#include "pattern.hpp"

#include <algorithm>
#include <cstddef>

namespace halo3d {
namespace {

template <class Action>
void with_element(Element element, Action&& action) {
  element == Element::float32 ? action(float()) : action(double());
}

class HostPattern : public Pattern {
 public:
  HostPattern(const Grid& grid, Field& field, const Options& options)
      : rank_(grid.rank()), field_(field), domain_(domain_of(grid, field, options)) {
    for (int x = 0; x < field.extents()[2]; ++x) x_terms_.push_back(x_term(domain_, x));
  }
  void clear() override;
  void update(int exchange) override;
  void damage(int count) override;
  void check(int exchange, Count& count) override;

 private:
  /// The cells of a row that are in the same direction along x (border or interior).
  struct Segment {
    int begin, end;
    bool interior;
    bool filled;  ///< the cells have values; otherwise they must be unwritten
  };
  std::array<Segment, 3> segments(int z, int y, int quantity) const;
  template <class Real>
  void update_as(int exchange);
  template <class Real>
  void check_as(int exchange, Count& count);
  template <class Real>
  void check_guards(Count& count);
  template <class Real>
  Real* row(int z, int y, int quantity);

  int rank_;
  Field& field_;
  Domain domain_;
  std::vector<std::uint32_t> x_terms_;  ///< the part of a value that depends only on x
};

std::array<HostPattern::Segment, 3> HostPattern::segments(int z, int y, int quantity) const {
  const int bounds[4] = {0, field_.radius(), field_.radius() + field_.cells()[2], field_.extents()[2]};
  std::array<Segment, 3> all;
  for (int x_side = -1; x_side <= 1; ++x_side) {
    const int direction = direction_index(side(domain_, 0, z), side(domain_, 1, y), x_side);
    all[x_side + 1] = {bounds[x_side + 1], bounds[x_side + 2], direction == interior_index,
                       filled(domain_, direction, quantity)};
  }
  return all;
}

template <class Real>
Real* HostPattern::row(int z, int y, int quantity) {
  const Triple& extents = field_.extents();
  const std::size_t cell = (std::size_t(z) * extents[1] + y) * extents[2];
  return reinterpret_cast<Real*>(field_.first(quantity)) + cell * field_.cell_stride();
}

void HostPattern::clear() {
  with_element(field_.element(), [&](auto zero) {
    using Real = decltype(zero);
    for (int array = 0; array < field_.arrays(); ++array)
      std::fill_n(reinterpret_cast<Real*>(field_.array(array)), field_.array_elements(), Real(never_written));
  });
}

template <class Real>
void HostPattern::update_as(int exchange) {
  const int radius = field_.radius(), stride = field_.cell_stride();
  for (int quantity = 0; quantity < field_.quantities(); ++quantity)
    for (int z = radius; z < radius + field_.cells()[0]; ++z)
      for (int y = radius; y < radius + field_.cells()[1]; ++y) {
        const std::uint32_t seed = row_seed(domain_, z, y, quantity, exchange);
        Real* values = row<Real>(z, y, quantity);
        for (int x = radius; x < radius + field_.cells()[2]; ++x)
          values[std::ptrdiff_t(x) * stride] = Real(value_of(seed, x_terms_[x]));
      }
}

void HostPattern::update(int exchange) {
  with_element(field_.element(), [&](auto zero) { update_as<decltype(zero)>(exchange); });
}

void HostPattern::damage(int count) {
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
void HostPattern::check_as(int exchange, Count& count) {
  const int stride = field_.cell_stride();
  for (int quantity = 0; quantity < field_.quantities(); ++quantity)
    for (int z = 0; z < field_.extents()[0]; ++z)
      for (int y = 0; y < field_.extents()[1]; ++y) {
        const std::uint32_t seed = row_seed(domain_, z, y, quantity, exchange);
        const Real* values = row<Real>(z, y, quantity);
        for (const Segment& segment : segments(z, y, quantity)) {
          const auto expected = [&](int x) {
            return segment.filled ? Real(value_of(seed, x_terms_[x])) : Real(never_written);
          };
          int wrong = 0;
          for (int x = segment.begin; x < segment.end; ++x) wrong += values[std::ptrdiff_t(x) * stride] != expected(x);
          (segment.filled && !segment.interior ? count.halo_checked : count.other_checked) +=
              segment.end - segment.begin;
          count.wrong += wrong;
          if (!wrong || !count.first_wrong.empty()) continue;
          int x = segment.begin;
          while (values[std::ptrdiff_t(x) * stride] == expected(x)) ++x;
          count.first_wrong =
              wrong_cell(rank_, exchange, quantity, {z, y, x}, values[std::ptrdiff_t(x) * stride], expected(x));
        }
      }
}

template <class Real>
void HostPattern::check_guards(Count& count) {
  for (int array = 0; array < field_.arrays(); ++array) {
    const Real* begin = reinterpret_cast<const Real*>(field_.array(array));
    const Real* back = begin + field_.array_elements() - Field::guard;
    for (std::size_t at = 0; at < Field::guard; ++at) {
      const bool wrong = begin[at] != Real(never_written) || back[at] != Real(never_written);
      count.wrong += wrong;
      if (wrong && count.first_wrong.empty()) count.first_wrong = wrong_guard(rank_, array);
    }
    count.other_checked += 2 * std::int64_t(Field::guard);
  }
}

void HostPattern::check(int exchange, Count& count) {
  with_element(field_.element(), [&](auto zero) {
    check_as<decltype(zero)>(exchange, count);
    check_guards<decltype(zero)>(count);
  });
}

}  // namespace

Domain domain_of(const Grid& grid, const Field& field, const Options& options) {
  Domain domain{};
  for (int dimension = 0; dimension < 3; ++dimension) {
    domain.cells[dimension] = field.cells()[dimension];
    domain.extents[dimension] = field.extents()[dimension];
    domain.ranks[dimension] = grid.ranks()[dimension];
    domain.position[dimension] = grid.position()[dimension];
  }
  domain.radius = field.radius();
  domain.exchanged = options.quantities_exchanged();
  for (const Triple& step : directions(options.neighbors))
    if (grid.neighbor(step) != MPI_PROC_NULL) domain.reachable |= 1u << direction_index(step[0], step[1], step[2]);
  return domain;
}

std::string wrong_cell(int rank, int exchange, int quantity, const Triple& cell, double holds, double must_hold) {
  return "rank " + std::to_string(rank) + ", exchange " + std::to_string(exchange) + ", quantity " +
         std::to_string(quantity) + ", local cell x=" + std::to_string(cell[2]) + " y=" + std::to_string(cell[1]) +
         " z=" + std::to_string(cell[0]) + " (halo included): holds " + std::to_string(holds) + ", must hold " +
         std::to_string(must_hold);
}
std::string wrong_guard(int rank, int array) {
  return "rank " + std::to_string(rank) + ": written outside array " + std::to_string(array);
}

std::unique_ptr<Pattern> make_pattern(const Grid& grid, Field& field, const Options& options) {
  if (options.device) return make_device_pattern(grid, field, options);
  return std::make_unique<HostPattern>(grid, field, options);
}

}  // namespace halo3d
