// SPDX-License-Identifier: Apache-2.0
#pragma once
// StagedBlocks: the blocks of an operation that are in device memory, and the packed host memory that the operation
// uses in their place. So the location of a buffer is local to its rank, and does not affect whether a call goes
// through the hierarchy.
//
// The call that starts the operation copies the bytes in, and the call that completes it copies them out; nothing is
// copied in between. If a GPU fails, these calls return the error.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/core/lanes.hpp"
#include "interpose/device/staging.hpp"

namespace bestride::inline interpose {

enum class Access : unsigned char { read, written, both };

class StagedBlocks {
 public:
  StagedBlocks() = default;
  /// `comm`: the application's, for errors.
  explicit StagedBlocks(MPI_Comm comm) noexcept : comm_(comm) {}

  /// Blocks of a known type; block i is the elements `blocks[i]`, counted from `buffer`. If the GPU has to move any of
  /// their bytes, returns host memory that holds them packed, one block after the other, during the lifetime of this
  /// object; otherwise nullptr. `only` >= 0: if access is read and write, only this block is read. Throws an Error if
  /// the memory can't be accessed; may throw std::bad_alloc.
  std::byte* add(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, int only = -1);

  /// Called before each start and after each end; within a TransferBatch of the caller, or at once.
  void copy_in() const noexcept;
  void copy_out() const noexcept;
  /// True if a copy of copy_in() failed, which has been reported. The operation must not be started.
  bool failed() const noexcept;

 private:
  struct Group {
    StagingPtr staging;
    Range read;  ///< packed bytes that are copied in
    bool written;
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Group> groups_;
};

}  // namespace bestride::inline interpose
