// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measurements of rails (model/rails.hpp) by a job: which NICs all of its hosts have, whether its ranks can reach each
// other over the NICs that they took, and how long its nodes take for an exchange. All functions are collective over
// MPI_COMM_WORLD, give all ranks the same result, and need at least two nodes.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/rails.hpp"
#include "perfmodel/calibrate/common/job_topology.hpp"

namespace bestride::inline perfmodel {

/// The NICs of the list `wanted` or, for "auto", a set of equal NICs, if every host has them and every node has a rank
/// for each. An error names the host.
Result<Rails> rails_of_all_hosts(const std::string& wanted, const JobTopology& place);

/// True if every rank was given one of `rails` as its UCX_NET_DEVICES. An error names a host where one was not.
Result<bool> all_ranks_have(const Rails& rails, const JobTopology& place);

/// Sends a short message from every rank to every other. Returns when all have arrived; does not return if one can't
/// arrive.
void reach_all(const JobTopology& place);

/// Every node sends to the next node and receives from the previous one. On each node as many local ranks as the
/// smallest node has take part, with the same number of bytes each, all at the same time.
class NodeExchange {
 public:
  explicit NodeExchange(const JobTopology& place)
      : place_(place), idle_(place.my_local_rank() >= place.topology.min_ranks_per_node()) {}
  /// Seconds of each node. May throw std::bad_alloc.
  std::vector<double> seconds(std::int64_t bytes);
  /// The number of bytes for each rank with which an exchange takes a fifth of a second; 64 KiB to 64 MiB.
  std::int64_t enough_bytes();

 private:
  int across(int step) const;
  const JobTopology& place_;
  const bool idle_;
  std::vector<char> out_, in_;
};

}  // namespace bestride::inline perfmodel
