// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a job finds out about rails (model/rails.hpp): which NICs all its hosts have, whether its ranks reach each other over those they took, and how
// long its nodes take for an exchange. All functions are collective over MPI_COMM_WORLD and give all ranks the same; at least two nodes.
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/rails.hpp"
#include "perfmodel/measure/job_place.hpp"

namespace bestride {

/// Those of the list `wanted`, or with "auto" equal ones, if every host has them and every node a rank for each; an error names the host.
Result<Rails> rails_of_all_hosts(const std::string& wanted, const JobPlace& place);

/// Whether every rank was given one of `rails` as its UCX_NET_DEVICES; an error names a host where one was not.
Result<bool> all_took(const Rails& rails, const JobPlace& place);

/// A short message from every rank to every other: returns once all have arrived, never where one can't.
void reach_all(const JobPlace& place);

/// Every node sends to the next and receives from the one before, each local rank that all nodes have the same number of bytes, all at once.
class NodeExchange {
 public:
  explicit NodeExchange(const JobPlace& place) : place_(place), looks_on_(place.my_local_rank() >= place.topology.least_on_a_node()) {}
  /// Of each node. May throw std::bad_alloc.
  std::vector<double> seconds(std::int64_t bytes);
  /// So many bytes of a rank that an exchange takes a fifth of a second, 64 KiB to 64 MiB.
  std::int64_t enough_bytes();

 private:
  int across(int step) const;
  const JobPlace& place_;
  const bool looks_on_;
  std::vector<char> out_, in_;
};

}  // namespace bestride
