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
#include <memory>

#include "interpose/back/buffer.hpp"
#include "interpose/back/gpu/staging.hpp"
#include "kernels/packer.hpp"

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
  /// Takes host memory for the region, of which a part lies where the GPU has to move it. Error: no memory, or nothing reaches the region.
  /// `comm`: whose errors these are.
  Result<cuda::Done> prepare(const Region& region, MPI_Comm comm) noexcept;
  /// MPI's in place of the user's address.
  void* address() const noexcept { return address_; }
  explicit operator bool() const noexcept { return address_ != nullptr; }

  /// Before MPI reads it; waits. False: the bytes could not be moved, which is said.
  bool bring_in() noexcept;
  /// After MPI has written it: within a Together of the caller's, which tells what did not get through, or at once.
  void bring_out() noexcept;
  /// For the report: the bytes MPI reads, else those it writes. Null before prepare().
  LayoutPtr layout() const noexcept {
    const StagingPtr& one = reads_.staging ? reads_.staging : writes_.staging;
    return one ? one->layout_pointer() : nullptr;
  }
  /// The last bring_in() failed.
  bool refused() const noexcept { return reads_.staging && reads_.staging->failed(); }

 private:
  /// One direction. Packed bytes are brought between the device and the staging, and by the packer between that and the mirror, of which
  /// a contiguous layout's staging is a part.
  struct Way {
    StagingPtr staging;
    std::unique_ptr<const Packer> packer;
  };
  Result<Way> make_way(const Place& place, void* user, MPI_Comm comm, CallKind kind, const std::shared_ptr<Room>& shared, std::int64_t at);

  Way reads_, writes_;
  void* address_ = nullptr;
  HostSpan span_;
};

}  // namespace bestride
