// SPDX-License-Identifier: Apache-2.0
#pragma once
// The blocks of a collective that names a type for each, MPI_Alltoallw and MPI_Neighbor_alltoallw: each block is a side of its own,
// and its place follows wherever its buffer goes, since displacements are in bytes.
#include <mpi.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "interpose/back/sides.hpp"

namespace bestride {

/// Whom the blocks go to or come from.
struct Peers {
  std::size_t count = 0;
  const int* ranks = nullptr;  ///< nullptr: all ranks, a block for each

  /// MPI_ANY_SOURCE for one of all: in a collective every block is as far as the farthest, also the rank's own, which the library
  /// moves by the same engine.
  int operator[](std::size_t i) const noexcept { return ranks ? ranks[i] : MPI_ANY_SOURCE; }
};

/// Kind: Outgoing or Incoming. Displacement: in bytes, int or MPI_Aint.
template <class Kind, class Count, class Displacement>
class TypedBlocks {
 public:
  /// True if some block is handed to MPI otherwise than the user gave it. May throw std::bad_alloc.
  bool prepare(const void* base, const Count* counts, const Displacement* displacements, const MPI_Datatype* types,
               Peers peers, MPI_Comm comm, Manner manner, bool reused) {
    const std::size_t n = peers.count;
    counts_.assign(counts, counts + n);
    displacements_.assign(displacements, displacements + n);
    types_.assign(types, types + n);
    sides_.resize(n);
    bool any = false;
    for (std::size_t i = 0; i < n; ++i) {
      TypeEntry* entry = worth_a_look(types[i], counts[i]);
      if (!entry) continue;
      if (reused) entry->expect_reuse();
      auto* at = const_cast<char*>(static_cast<const char*>(base)) + displacements[i];
      if (!sides_[i].prepare(at, counts[i], entry, peers[i], comm, largest_count<Count>, manner)) continue;
      const std::intptr_t moved = reinterpret_cast<std::intptr_t>(sides_[i].buffer()) - reinterpret_cast<std::intptr_t>(base);
      if (!std::in_range<Displacement>(moved)) {
        sides_[i].leave("count");
        continue;
      }
      any = true;
      counts_[i] = static_cast<Count>(sides_[i].count());
      displacements_[i] = static_cast<Displacement>(moved);
      types_[i] = sides_[i].type();
    }
    return any;
  }
  void fill() noexcept {
    for (Kind& side : sides_) side.fill();
  }
  void settle() noexcept {
    for (Kind& side : sides_) side.settle_whole();
  }
  void release() noexcept {
    for (Kind& side : sides_) side.release();
  }
  bool refused() const noexcept {
    for (const Kind& side : sides_)
      if (side.refused()) return true;
    return false;
  }
  int raise() const noexcept {
    for (const Kind& side : sides_)
      if (side.refused()) return side.raise();
    return MPI_ERR_OTHER;
  }
  const std::vector<Kind>& sides() const noexcept { return sides_; }
  const Count* counts() const noexcept { return counts_.data(); }
  const Displacement* displacements() const noexcept { return displacements_.data(); }
  const MPI_Datatype* types() const noexcept { return types_.data(); }

 private:
  std::vector<Kind> sides_;
  std::vector<Count> counts_;
  std::vector<Displacement> displacements_;
  std::vector<MPI_Datatype> types_;
};

}  // namespace bestride
