// SPDX-License-Identifier: Apache-2.0
#pragma once
// HostShadow: a copy in host memory of a buffer of a collective, with the same relative addresses.
//
// MPI is given the shadow's address with the user's own counts, displacements and types. So a shadow is exact for every
// collective, type, operation and MPI_IN_PLACE, and no other argument changes. Before the call, the bytes that MPI
// reads are copied in. After the call, the bytes that MPI wrote, and no others, are copied out. Gaps take address space
// only: the pages of a long shadow's gaps are never touched.
// Alternative considered: packed blocks as (n, basic type), which saves one copy on the CPU, but does not work for
// reductions, structs of several basic types and blocks at unequal distances, so that the shadow would be needed, too.
#include <mpi.h>

#include <cstdint>
#include <memory>

#include "interpose/device/staging.hpp"
#include "interpose/objects/buffer_pool.hpp"
#include "kernels/packer.hpp"

namespace bestride::inline interpose {

/// What MPI reads and writes through one buffer argument of a call.
struct BufferRegion {
  const void* user = nullptr;
  LayoutPtr reads = {};   ///< the bytes that MPI reads; null: none
  LayoutPtr writes = {};  ///< the bytes that MPI writes; null: none
  bool unknown = false;   ///< the bytes can't be determined: a type that can't be represented, or no memory
  bool plain = true;      ///< all types are contiguous
};

/// Host memory of any length; only touched pages take memory. Movable.
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
  BufferLease lease_;
  char* data_ = nullptr;
  std::size_t mapped_ = 0;
};

class HostShadow {
 public:
  /// Allocates host memory for the region, a part of which the GPU has to move. Error: no memory, or no device can
  /// access the region. `comm`: the communicator whose error handler gets the errors.
  Result<cuda::Done> prepare(const BufferRegion& region, MPI_Comm comm) noexcept;
  /// The address that MPI is given in place of the user's.
  void* address() const noexcept { return address_; }
  explicit operator bool() const noexcept { return address_ != nullptr; }

  /// Call before MPI reads the buffer; waits. Returns false if the bytes could not be moved, which is reported.
  bool copy_in() noexcept;
  /// Call after MPI has written the buffer. Inside a TransferBatch of the caller, the batch moves the bytes and reports
  /// failures; otherwise the bytes move immediately.
  void copy_out() noexcept;
  /// The layout for the report: that of the bytes that MPI reads, else of those that it writes. Null before prepare().
  LayoutPtr layout() const noexcept {
    const StagingPtr& one = reads_.staging ? reads_.staging : writes_.staging;
    return one ? one->layout_pointer() : nullptr;
  }
  /// The last copy_in() failed.
  bool failed() const noexcept { return reads_.staging && reads_.staging->failed(); }

 private:
  /// One direction. Device operations move packed bytes between the device and the staging; the packer moves them
  /// between the staging and the shadow. For a contiguous layout the staging is a part of the shadow.
  struct ShadowDirection {
    StagingPtr staging;
    std::unique_ptr<const Packer> packer;
  };
  Result<ShadowDirection> make_direction(const BufferLocation& location, void* user, MPI_Comm comm, CallKind kind,
                                         const std::shared_ptr<StagingBuffer>& shared, std::int64_t at);

  ShadowDirection reads_, writes_;
  void* address_ = nullptr;
  HostSpan span_;
};

}  // namespace bestride::inline interpose
