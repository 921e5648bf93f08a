// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of one rank: interior cells with a halo around them, as one array per quantity or as one array of structs.
// In host memory, or with --device in GPU memory, which only kernels may access.
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "options.hpp"

namespace halo3d {

/// A box of cells in one rank's array, halo included: the first cell and the number of cells per dimension.
struct Region {
  Triple start;
  Triple size;
};

class Field {
 public:
  /// Elements before and after every array that must never be written.
  static constexpr std::size_t guard = 64;

  explicit Field(const Options& options);

  const Triple& extents() const { return extents_; }  ///< cells per dimension, halo included
  const Triple& cells() const { return cells_; }      ///< interior cells per dimension
  int radius() const { return radius_; }
  int quantities() const { return quantities_; }
  Element element() const { return element_; }
  Storage storage() const { return storage_; }
  std::size_t element_bytes() const { return element_ == Element::float32 ? 4 : 8; }
  /// Elements from one cell to the next along x.
  int cell_stride() const { return storage_ == Storage::interleaved ? quantities_ : 1; }
  std::size_t cell_count() const;

  /// Address of `quantity` in the first cell of its array (the lowest corner of the halo).
  std::byte* first(int quantity);

  int arrays() const { return int(arrays_.size()); }
  std::byte* array(int index) { return arrays_[index].get(); }  ///< start of the array, guard included
  std::size_t array_elements() const { return cell_count() * cell_stride() + 2 * guard; }

  /// The interior cells that the neighbor in `direction` needs.
  Region inner_edge(const Triple& direction) const;
  /// The halo cells that the neighbor in `direction` provides.
  Region halo(const Triple& direction) const;

 private:
  Triple cells_;
  Triple extents_;
  int radius_;
  int quantities_;
  Element element_;
  Storage storage_;
  std::vector<std::unique_ptr<std::byte[], std::function<void(std::byte*)>>> arrays_;
};

}  // namespace halo3d
