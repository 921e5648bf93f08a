// SPDX-License-Identifier: Apache-2.0
#pragma once
// One halo exchange, done in any of the ways applications do it.
#include <memory>
#include <vector>

#include "datatypes.hpp"
#include "grid.hpp"

namespace halo3d {

/// Data moving one step in `direction`: out to the neighbour there, in from the neighbour opposite.
struct Channel {
  Triple direction;
  int tag;
  int part;  ///< which of the messages to the same neighbour
  int to;
  Place send;
  int from;
  Place receive;
};

/// Every channel of the exchange, all parts of a direction together. Types are made and committed here.
std::vector<Channel> channels_of(const Grid& grid, Field& field, const Options& options);

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Collective over the grid; on return every halo cell that has a neighbour is filled.
  virtual void run() = 0;
};

/// `channels` must outlive the exchange. Collective.
std::unique_ptr<Exchange> make_exchange(Method method, const Grid& grid, int neighbours, const std::vector<Channel>& channels);

/// The neighbourhood collective has a file of its own.
std::unique_ptr<Exchange> make_neighbor_alltoallw(const Grid& grid, int neighbours, const std::vector<Channel>& channels);

}  // namespace halo3d
