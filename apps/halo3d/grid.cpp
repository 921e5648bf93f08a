// SPDX-License-Identifier: Apache-2.0
#include "grid.hpp"

#include <cstdlib>

namespace halo3d {

std::vector<Triple> directions(int neighbors) {
  std::vector<Triple> all;
  for (int z = -1; z <= 1; ++z)
    for (int y = -1; y <= 1; ++y)
      for (int x = -1; x <= 1; ++x) {
        const int steps = std::abs(z) + std::abs(y) + std::abs(x);
        if (steps == 1 || (steps > 1 && neighbors == 26)) all.push_back({z, y, x});
      }
  return all;
}

Grid::Grid(MPI_Comm parent, Triple ranks, bool periodic) : periodic_(periodic), ranks_(ranks) {
  int size = 0;
  MPI_Comm_size(parent, &size);
  MPI_Dims_create(size, 3, ranks_.data());
  const Triple wraps = {periodic, periodic, periodic};
  MPI_Cart_create(parent, 3, ranks_.data(), wraps.data(), 0, &communicator_);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Cart_coords(communicator_, rank_, 3, position_.data());
}

Grid::~Grid() { MPI_Comm_free(&communicator_); }

int Grid::neighbor(const Triple& direction) const {
  Triple there = position_;
  for (int dimension = 0; dimension < 3; ++dimension) {
    there[dimension] += direction[dimension];
    const bool outside = there[dimension] < 0 || there[dimension] >= ranks_[dimension];
    if (outside && !periodic_) return MPI_PROC_NULL;
  }
  int rank = MPI_PROC_NULL;
  MPI_Cart_rank(communicator_, there.data(), &rank);
  return rank;
}

}  // namespace halo3d
