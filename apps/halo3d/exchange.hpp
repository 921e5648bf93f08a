// SPDX-License-Identifier: Apache-2.0
#pragma once
// One halo exchange by any of the methods that applications use.
#include <memory>
#include <vector>

#include "datatypes.hpp"
#include "grid.hpp"

namespace halo3d {

/// Data that moves one step in `direction`: sent to the neighbor in that direction, received from the opposite
/// neighbor.
struct Channel {
  Triple direction;
  int tag;
  int part;  ///< index among the messages to the same neighbor
  int to;
  FaceType send;
  int from;
  FaceType receive;
};

/// All channels of the exchange; the parts of a direction are adjacent. Creates and commits the types.
std::vector<Channel> channels_of(const Grid& grid, Field& field, const Options& options);

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective over the grid. On return every halo cell that has a neighbor is filled.
  virtual void run() = 0;
};

/// `channels` must outlive the exchange. Collective.
std::unique_ptr<Exchange> make_exchange(Method method, const Grid& grid, int neighbors,
                                        const std::vector<Channel>& channels);

/// Defined in a separate file.
std::unique_ptr<Exchange> make_neighbor_alltoallw(const Grid& grid, int neighbors,
                                                  const std::vector<Channel>& channels);

}  // namespace halo3d
