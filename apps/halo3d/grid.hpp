// SPDX-License-Identifier: Apache-2.0
#pragma once
// The ranks as a 3-D grid: the neighbors of a rank, and the position of its cells in the global domain.
#include <mpi.h>

#include <vector>

#include "options.hpp"

namespace halo3d {

/// The 6 or 26 steps to a neighbor, each component -1, 0 or +1, in ascending order. Step i and step (last - i) are
/// opposite.
std::vector<Triple> directions(int neighbors);

inline Triple opposite(const Triple& direction) { return {-direction[0], -direction[1], -direction[2]}; }

/// Owns a Cartesian communicator created from `parent` (collective). Not copyable.
class Grid {
 public:
  Grid(MPI_Comm parent, Triple ranks, bool periodic);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  bool periodic() const { return periodic_; }
  const Triple& ranks() const { return ranks_; }
  const Triple& position() const { return position_; }
  /// MPI_PROC_NULL outside a non-periodic border.
  int neighbor(const Triple& direction) const;

 private:
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  bool periodic_;
  Triple ranks_;
  Triple position_{};
};

}  // namespace halo3d
