// SPDX-License-Identifier: Apache-2.0
#pragma once
// Writes the expected values (value.hpp) to cells and compares them, in the memory that holds the field.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "field.hpp"
#include "grid.hpp"
#include "value.hpp"

namespace halo3d {

struct Count {
  std::int64_t halo_checked = 0;   ///< values received from a neighbor
  std::int64_t other_checked = 0;  ///< interior values, halo cells without a neighbor, guards
  std::int64_t wrong = 0;
  std::string first_wrong;  ///< position of the first wrong value; empty if all are correct
};

class Pattern {
 public:
  virtual ~Pattern() = default;

  /// Marks every element as never written.
  virtual void clear() = 0;
  /// Writes the values of exchange number `exchange` to the interior. They are visible on return.
  virtual void update(int exchange) = 0;
  /// Overwrites the first `count` values that came from a neighbor with wrong ones.
  virtual void damage(int count) = 0;
  /// Compares every element of every array.
  virtual void check(int exchange, Count& count) = 0;
};

/// For a field in host or in device memory. `grid` and `field` must outlive the result.
std::unique_ptr<Pattern> make_pattern(const Grid& grid, Field& field, const Options& options);
/// Defined in a separate file.
std::unique_ptr<Pattern> make_device_pattern(const Grid& grid, Field& field, const Options& options);

Domain domain_of(const Grid& grid, const Field& field, const Options& options);

/// "rank 0, exchange 1, quantity 2, local cell x=3 y=4 z=5 (halo included): holds 6.0, must hold 7.0"
std::string wrong_cell(int rank, int exchange, int quantity, const Triple& cell, double holds, double must_hold);
std::string wrong_guard(int rank, int array);

}  // namespace halo3d
