// SPDX-License-Identifier: Apache-2.0
#pragma once
// The initializer and the verifier as code of one thread, which runs on the device (device_kernels.cu) or on the host
// (device_kernels_host.cpp).
#include <cstdint>

#include "value.hpp"

namespace halo3d {

/// Counters of the verifier, in device memory.
struct Tally {
  std::uint64_t halo_checked;
  std::uint64_t other_checked;
  std::uint64_t wrong;
  std::uint64_t first_wrong;  ///< the lowest wrong element of the array; ~0 if none
};

/// The parameter of every kernel: one array.
struct Job {
  Domain domain;
  std::uint64_t array;     ///< address of the array, at the start of its guard
  std::uint64_t elements;  ///< guards included
  std::uint64_t tally;     ///< address of a Tally; the verifier adds to it
  std::int32_t guard;      ///< elements before the first cell, and after the last
  std::int32_t quantity;   ///< of the first element
  std::int32_t stride;     ///< elements from one cell to the next; all quantities of one cell are in between
  std::int32_t exchange;
  std::int32_t real_bytes;  ///< 4 or 8
};

/// Position of an element. `direction` < 0: in a guard.
struct Spot {
  int z, y, x, quantity, direction;
};

HALO3D_HOST_DEVICE Spot spot_at(const Job& job, std::uint64_t index) {
  const std::uint64_t guard = std::uint64_t(job.guard);
  if (index < guard || index >= job.elements - guard) return {0, 0, 0, 0, -1};
  const std::uint64_t cell = (index - guard) / std::uint64_t(job.stride);
  Spot at;
  at.quantity = job.quantity + int((index - guard) % std::uint64_t(job.stride));
  at.x = int(cell % std::uint64_t(job.domain.extents[2]));
  const std::uint64_t row = cell / std::uint64_t(job.domain.extents[2]);
  at.y = int(row % std::uint64_t(job.domain.extents[1]));
  at.z = int(row / std::uint64_t(job.domain.extents[1]));
  at.direction = direction_index(side(job.domain, 0, at.z), side(job.domain, 1, at.y), side(job.domain, 2, at.x));
  return at;
}

HALO3D_HOST_DEVICE std::int32_t value_at(const Job& job, const Spot& at) {
  if (at.direction < 0 || !filled(job.domain, at.direction, at.quantity)) return never_written;
  return value_of(row_seed(job.domain, at.z, at.y, at.quantity, job.exchange), x_term(job.domain, at.x));
}

// Each function processes the elements first, first + step, ... of the array.

template <class Real>
HALO3D_HOST_DEVICE void clear_elements(const Job& job, Real* array, std::uint64_t first, std::uint64_t step) {
  for (std::uint64_t i = first; i < job.elements; i += step) array[i] = Real(never_written);
}

template <class Real>
HALO3D_HOST_DEVICE void update_elements(const Job& job, Real* array, std::uint64_t first, std::uint64_t step) {
  for (std::uint64_t i = first; i < job.elements; i += step) {
    const Spot at = spot_at(job, i);
    if (at.direction == interior_index) array[i] = Real(value_at(job, at));
  }
}

template <class Real>
HALO3D_HOST_DEVICE void check_elements(const Job& job, const Real* array, std::uint64_t first, std::uint64_t step,
                                       Tally& tally) {
  for (std::uint64_t i = first; i < job.elements; i += step) {
    const Spot at = spot_at(job, i);
    const bool from_neighbor =
        at.direction >= 0 && at.direction != interior_index && filled(job.domain, at.direction, at.quantity);
    ++(from_neighbor ? tally.halo_checked : tally.other_checked);
    if (array[i] == Real(value_at(job, at))) continue;
    ++tally.wrong;
    if (i < tally.first_wrong) tally.first_wrong = i;
  }
}

}  // namespace halo3d
