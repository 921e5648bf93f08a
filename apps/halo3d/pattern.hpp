// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every cell must hold. A value is a whole number computed from the cell's place in the whole domain, the quantity and
// the exchange, exact in float; so a received cell can be checked without asking the rank that sent it, and a cell left over
// from the exchange before is wrong.
#include <cstdint>
#include <string>
#include <vector>

#include "field.hpp"
#include "grid.hpp"

namespace halo3d {

struct Count {
  std::int64_t halo_checked = 0;   ///< values received from a neighbour
  std::int64_t other_checked = 0;  ///< interior values, halo that has no neighbour, guards
  std::int64_t wrong = 0;
  std::string first_wrong;  ///< says where, empty if nothing is wrong
};

class Pattern {
 public:
  Pattern(const Grid& grid, Field& field, const Options& options);

  /// Marks every element as never written.
  void clear();
  /// Gives the interior the values of exchange number `exchange`.
  void update(int exchange);
  /// Spoils the first `count` values that came from a neighbour.
  void damage(int count);
  /// Compares every element of every array.
  void check(int exchange, Count& count);

 private:
  /// The cells of a row that share their position across the border along x.
  struct Segment {
    int begin, end;
    bool interior;
    bool filled;  ///< has a value; otherwise nothing may have been written
  };
  std::array<Segment, 3> segments(int z, int y, int quantity) const;
  std::uint32_t row_seed(int z, int y, int quantity, int exchange) const;
  std::uint32_t along(int dimension, int local) const;
  template <class Real>
  void update_as(int exchange);
  template <class Real>
  void check_as(int exchange, Count& count);
  template <class Real>
  void check_guards(Count& count);
  template <class Real>
  Real* row(int z, int y, int quantity);

  const Grid& grid_;
  Field& field_;
  int exchanged_;
  std::array<bool, 27> reachable_{};    ///< by direction: the halo there is filled by a neighbour
  std::vector<std::uint32_t> x_terms_;  ///< the part of a value that depends on x alone
};

}  // namespace halo3d
