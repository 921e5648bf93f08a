// SPDX-License-Identifier: Apache-2.0
#pragma once
// The expected value of every cell: an integer computed from the cell's position in the global domain, the quantity and
// the exchange, and exactly representable in float. So a received cell can be checked without asking the rank that sent
// it, and a cell left over from the previous exchange is wrong. Compiled for the host and for the device.
#include <cstdint>

#ifdef __CUDACC__
#define HALO3D_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define HALO3D_HOST_DEVICE inline
#endif

namespace halo3d {

constexpr int never_written = -1;  // valid values are not negative

/// One rank's part of the domain; dimensions as in Triple. Plain integers, so that it can be a kernel parameter.
struct Domain {
  std::int32_t cells[3];     ///< interior
  std::int32_t extents[3];   ///< halo included
  std::int32_t ranks[3];     ///< in the global domain
  std::int32_t position[3];  ///< of this rank among them
  std::int32_t radius;
  std::int32_t exchanged;   ///< quantities
  std::uint32_t reachable;  ///< bit direction_index(): a neighbor fills the halo in this direction
};

/// Index 0 to 26 of a direction with components -1, 0 or 1. 13 is the interior.
HALO3D_HOST_DEVICE int direction_index(int z, int y, int x) { return (z + 1) * 9 + (y + 1) * 3 + x + 1; }
constexpr int interior_index = 13;

HALO3D_HOST_DEVICE std::uint32_t mix(std::uint32_t value) {
  value ^= value >> 16;
  value *= 0x7FEB352Du;
  value ^= value >> 15;
  value *= 0x846CA68Bu;
  return value ^ (value >> 16);
}

/// Global position of a local position (halo included), with periodic wrap.
HALO3D_HOST_DEVICE std::uint32_t along(const Domain& domain, int dimension, int local) {
  const std::int64_t cells = domain.cells[dimension], all = cells * domain.ranks[dimension];
  return std::uint32_t((cells * domain.position[dimension] + local - domain.radius + all) % all);
}

/// The part of a value that depends on the row, and below it the part that depends on x.
HALO3D_HOST_DEVICE std::uint32_t row_seed(const Domain& domain, int z, int y, int quantity, int exchange) {
  return mix(mix(mix(along(domain, 0, z) + 1) + along(domain, 1, y)) + std::uint32_t(quantity) * 0x10001u) +
         std::uint32_t(exchange) * 0xC2B2AE35u;
}
HALO3D_HOST_DEVICE std::uint32_t x_term(const Domain& domain, int x) { return along(domain, 2, x) * 0x85EBCA6Bu; }

/// Odd factors and a fold distribute neighboring positions over 23 bits, so that a shift by any cell, row, quantity or
/// exchange is detected.
HALO3D_HOST_DEVICE std::int32_t value_of(std::uint32_t row_seed, std::uint32_t x_term) {
  std::uint32_t mixed = (row_seed + x_term) * 0x9E3779B1u;
  mixed ^= mixed >> 15;
  return std::int32_t(mixed >> 9);
}

/// -1 below the interior, 0 inside, 1 above.
HALO3D_HOST_DEVICE int side(const Domain& domain, int dimension, int local) {
  return local < domain.radius ? -1 : local >= domain.radius + domain.cells[dimension] ? 1 : 0;
}

/// True if the cells in that direction must hold values; otherwise they must be unwritten.
HALO3D_HOST_DEVICE bool filled(const Domain& domain, int direction, int quantity) {
  return direction == interior_index || (quantity < domain.exchanged && (domain.reachable >> direction & 1) != 0);
}

}  // namespace halo3d
