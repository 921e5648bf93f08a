// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mirror: a buffer of a collective, doubled in host memory at the same relative places.
//
// MPI is handed the mirror's address with the user's own counts, displacements and types: so a mirror is exact in every collective, for
// every type, operation and MPI_IN_PLACE, and nothing else of the call changes. Before the call the bytes MPI reads are brought in; after
// it the bytes MPI wrote, no others, go back. Gaps take address space only: long mirrors are pages that nobody touches.
// Alternative that lost: packed blocks as (n, basic type); it saves the CPU a copy, but not for reductions, structs of several basic types
// and blocks at unequal places, so the mirror would be there besides it.
#include <mpi.h>

#include <cstdint>

#include "interpose/back/buffer.hpp"
#include "interpose/back/gpu/copy.hpp"
#include "interpose/back/gpu/place.hpp"
#include "kernels/cuda/pool.hpp"

namespace bestride {

/// What one buffer argument of a call is to MPI.
struct Region {
  const void* user = nullptr;
  LayoutPtr reads = {};   ///< the bytes MPI reads from it; null: none
  LayoutPtr writes = {};  ///< the bytes MPI writes; null: none
  bool unknown = false;  ///< what MPI touches can't be told: a type that can't be represented, or no memory
  bool plain = true;     ///< all of its types are contiguous
};

/// Host memory of any length, of which only what is touched takes memory. Movable.
class HostSpan {
 public:
  HostSpan() = default;
  HostSpan(HostSpan&& other) noexcept;
  HostSpan& operator=(HostSpan&& other) noexcept;
  ~HostSpan() { release(); }
  bool take(std::int64_t bytes) noexcept;
  void release() noexcept;
  char* data() const noexcept { return data_; }

 private:
  Lease lease_;
  char* data_ = nullptr;
  std::size_t mapped_ = 0;
};

class Mirror {
 public:
  /// Takes host memory for the region, of which a part lies where the GPU has to move it. Error: no memory.
  Result<cuda::Done> prepare(const Region& region) noexcept;
  /// MPI's in place of the user's address.
  void* address() const noexcept { return address_; }
  explicit operator bool() const noexcept { return address_ != nullptr; }

  /// Before MPI reads it.
  Result<cuda::Done> bring_in() noexcept;
  /// After MPI has written it.
  Result<cuda::Done> bring_out() noexcept;

 private:
  Place reads_, writes_;
  void* user_ = nullptr;
  void* address_ = nullptr;
  HostSpan span_;
  cuda::Buffer pinned_;
};

}  // namespace bestride
