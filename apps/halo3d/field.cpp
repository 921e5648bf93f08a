// SPDX-License-Identifier: Apache-2.0
#include "field.hpp"

#include "gpu.hpp"

namespace halo3d {

Field::Field(const Options& options)
    : cells_(options.cells),
      extents_(options.cells),
      radius_(options.radius),
      quantities_(options.quantities),
      element_(options.element),
      storage_(options.storage) {
  for (int& extent : extents_) extent += 2 * radius_;
  arrays_.resize(storage_ == Storage::interleaved ? 1 : quantities_);
  const std::size_t bytes = array_elements() * element_bytes();
  for (auto& array : arrays_) {
    if (options.device)
      array = {Gpu::get().allocate(bytes), [](std::byte* memory) { Gpu::get().free(memory); }};
    else
      array = {new std::byte[bytes](), [](std::byte* memory) { delete[] memory; }};
  }
}

std::size_t Field::cell_count() const { return std::size_t(extents_[0]) * extents_[1] * extents_[2]; }

std::byte* Field::first(int quantity) {
  if (storage_ == Storage::interleaved) return array(0) + (guard + quantity) * element_bytes();
  return array(quantity) + guard * element_bytes();
}

Region Field::inner_edge(const Triple& direction) const {
  Region region;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const int step = direction[dimension];
    region.start[dimension] = step > 0 ? cells_[dimension] : radius_;
    region.size[dimension] = step == 0 ? cells_[dimension] : radius_;
  }
  return region;
}

Region Field::halo(const Triple& direction) const {
  Region region;
  for (int dimension = 0; dimension < 3; ++dimension) {
    const int step = direction[dimension];
    region.start[dimension] = step > 0 ? cells_[dimension] + radius_ : step < 0 ? 0 : radius_;
    region.size[dimension] = step == 0 ? cells_[dimension] : radius_;
  }
  return region;
}

}  // namespace halo3d
