// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of a collective with one type per block (MPI_Alltoallw, MPI_Neighbor_alltoallw). Each block is an endpoint
// of its own and may be anywhere in memory, because the displacements are in bytes.
#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "interpose/message/endpoint.hpp"

namespace bestride::inline interpose {

/// The ranks that the blocks are sent to or received from.
struct Peers {
  std::size_t count = 0;
  const int* ranks = nullptr;  ///< nullptr: all ranks, one block for each

  /// MPI_ANY_SOURCE if all ranks take part: every block of a collective is treated as being as far as the farthest one,
  /// also the rank's own block, which the library moves by the same engine.
  int operator[](std::size_t i) const noexcept { return ranks ? ranks[i] : MPI_ANY_SOURCE; }
};

/// Kind: SendEndpoint or ReceiveEndpoint. Displacement: in bytes, int or MPI_Aint.
template <class Kind, class Count, class Displacement>
class TypedBlocks {
 public:
  /// True if MPI is given other arguments than the user's for some block. May throw std::bad_alloc.
  bool prepare(const void* base, const Count* counts, const Displacement* displacements, const MPI_Datatype* types,
               Peers peers, MPI_Comm comm, CallTraits traits, bool reused) {
    const std::size_t n = peers.count;
    counts_.assign(counts, counts + n);
    displacements_.assign(displacements, displacements + n);
    types_.assign(types, types + n);
    endpoints_.resize(n);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      TypeEntry* entry = find_candidate(types[i], counts[i]);
      if (!entry) continue;
      if (reused) entry->expect_reuse();
      auto* at = const_cast<char*>(static_cast<const char*>(base)) + displacements[i];
      if (!endpoints_[i].prepare(at, counts[i], entry, peers[i], comm, largest_count<Count>, traits)) continue;
      const std::intptr_t moved =
          reinterpret_cast<std::intptr_t>(endpoints_[i].buffer()) - reinterpret_cast<std::intptr_t>(base);
      if (!std::in_range<Displacement>(moved)) {
        endpoints_[i].forward_because("count");
        continue;
      }
      any = true;
      counts_[i] = static_cast<Count>(endpoints_[i].count());
      displacements_[i] = static_cast<Displacement>(moved);
      types_[i] = endpoints_[i].type();
    }
    return any;
  }
  void fill() noexcept {
    for (Kind& endpoint : endpoints_) endpoint.fill();
  }
  void complete() noexcept {
    for (Kind& endpoint : endpoints_) endpoint.complete_whole();
  }
  void release() noexcept {
    for (Kind& endpoint : endpoints_) endpoint.release();
  }
  bool failed() const noexcept {
    for (const Kind& endpoint : endpoints_)
      if (endpoint.failed()) return true;
    return false;
  }
  int raise_error() const {
    for (const Kind& endpoint : endpoints_)
      if (endpoint.failed()) return endpoint.raise_error();
    return MPI_ERR_OTHER;
  }
  const std::vector<Kind>& endpoints() const noexcept { return endpoints_; }
  const Count* counts() const noexcept { return counts_.data(); }
  const Displacement* displacements() const noexcept { return displacements_.data(); }
  const MPI_Datatype* types() const noexcept { return types_.data(); }

 private:
  std::vector<Kind> endpoints_;
  std::vector<Count> counts_;
  std::vector<Displacement> displacements_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace bestride::inline interpose
