// SPDX-License-Identifier: Apache-2.0
#include "collectives/core/hierarchy.hpp"

#include <sys/mman.h>

#include <new>
#include <utility>

namespace bestride::inline collectives {

Hierarchy::Hierarchy(Topology topology, int rank, Transport& transport, Channels channels)
    : topology_(std::move(topology)),
      rank_(rank),
      node_(topology_.node_of(rank)),
      local_rank_(topology_.local_rank_of(rank)),
      local_ranks_(static_cast<int>(topology_.ranks_on(node_).size())),
      transport_(transport),
      channels_(std::move(channels)) {
  void* memory = mmap(nullptr, staging_bytes + intermediate_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  staging_ = static_cast<std::byte*>(memory);
}

Hierarchy::~Hierarchy() { munmap(staging_, staging_bytes + intermediate_bytes); }

}  // namespace bestride::inline collectives
