// SPDX-License-Identifier: Apache-2.0
#pragma once
// StagedBlocks: what of an operation's blocks lies in device memory, and the packed host memory that the operation has in its place. So
// only the rank whose memory it is has to know, and whether a call is spread does not depend on where its buffers lie.
//
// The bytes are brought in by the call that starts the operation and brought out by the one that completes it, not while it is carried on:
// those calls return the error if a GPU fails. What is gathered as codes is brought in and out as codes, where that is faster.
#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "collectives/lanes.hpp"
#include "interpose/back/gpu/staging.hpp"
#include "interpose/back/hierarchical/device_codes.hpp"

namespace bestride {

/// What stands in the place of blocks in device memory.
struct StagedPlace {
  std::byte* packed = nullptr;   ///< nullptr: the CPU moves them all
  DeviceCodes* codes = nullptr;  ///< their codes, if these are brought in and out; then `packed` is theirs
};

class StagedBlocks {
 public:
  StagedBlocks() = default;
  /// `comm`: the application's, for errors.
  explicit StagedBlocks(MPI_Comm comm) noexcept : comm_(comm) {}

  /// Blocks of a known type; block i is the elements `blocks[i]` from `buffer` on. Where the GPU has to move any of their bytes: the begin of
  /// as many bytes of host memory, in which they stand packed, one block after the other, until this is gone. `only` >= 0: of what is accessed
  /// both ways only this block is read. `coding`: they are numbers that the operation wants or gives as codes. Throws an Error if nothing reaches
  /// them; may throw std::bad_alloc.
  StagedPlace add(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, int only = -1, const Coding* coding = nullptr);

  /// Before each start and after each end, each within a Together of the caller's, or at once.
  void bring_in() const noexcept;
  void bring_out() const noexcept;
  /// After bring_in(): something was not moved, which is said. The operation must not be started.
  bool refused() const noexcept;

 private:
  struct Group {
    StagingPtr staging;
    Range read;  ///< packed bytes that are brought in
    bool written;
    std::unique_ptr<DeviceCodes> codes;  ///< or nullptr
  };
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::vector<Group> groups_;
};

}  // namespace bestride
