// SPDX-License-Identifier: Apache-2.0
#pragma once
// A user's blocks of (buffer, count, datatype) as Operands, for any type. A collective can't be left to MPI on one rank
// alone, so a type without a packer goes through MPI_Pack, into buffers of its whole size.
#include <mpi.h>

#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "collectives/core/operand.hpp"
#include "interpose/collectives/staged_blocks.hpp"
#include "interpose/objects/plan.hpp"
#include "interpose/objects/predefined_types.hpp"

namespace bestride::inline interpose {

/// Throws std::bad_alloc if MPI could not pack a send buffer; the operation then fails on all members.
inline void require_packed(bool packed) {
  if (!packed) throw std::bad_alloc();
}

/// The size of one element of a known type: a predefined type, or one whose commit was seen. A type that this rank
/// could not store, due to an allocation failure, counts as known, because the other members rely on it.
struct ElementSize {
  std::int64_t packed = -1;  ///< bytes; -1: not known, so the call is left to MPI
  std::int64_t extent = 0;
};
ElementSize element_size(MPI_Datatype type) noexcept;
/// The predefined type that all elements of a known, not predefined type have. MPI_DATATYPE_NULL: there are several.
MPI_Datatype leaf_of(MPI_Datatype type) noexcept;

/// One block for each rank.
class UserBlocks final : public Operands {
 public:
  /// `type` must be known. Rank i's block consists of the elements `blocks[i]`, counted from `buffer`. The operation
  /// accesses them in place, or in `staged`, which outlives this object. `only`, exceptions: as for
  /// StagedBlocks::add().
  UserBlocks(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, StagedBlocks& staged,
             int only = -1);
  UserBlocks(UserBlocks&& other) noexcept;
  ~UserBlocks();

  /// Prepares the data that will be read; called at each start. False: MPI could not pack it.
  bool fill() noexcept;
  /// Called after all data has been written.
  void complete() noexcept;

  Operand of(int rank) const noexcept override { return operands_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return operands_[static_cast<std::size_t>(rank)].bytes(); }

 private:
  struct Counted {
    std::int64_t count;
    PlanRef plan;  ///< none: contiguous, or only MPI can pack it
    bool by_mpi;
    std::int64_t shift = 0;  ///< without a plan: bytes from the block's address to its first byte
  };
  /// A block that MPI packs, and its packed copy.
  struct MpiOrdered {
    std::byte* place;
    std::int64_t count;
    std::unique_ptr<std::byte[]> packed;
  };
  UserBlocks(MPI_Datatype type, Access access)
      : type_(type), element_(element_size(type)), predefined_(predefined(type) != nullptr), access_(access) {}
  /// Adds the next rank's block, which begins `elements` extents after `buffer`.
  void add(const void* buffer, std::int64_t elements, std::int64_t count);
  const Counted& counted(std::int64_t count);

  MPI_Datatype type_;
  MPI_Datatype own_type_ = MPI_DATATYPE_NULL;  ///< a duplicate, if MPI packs
  ElementSize element_;
  bool predefined_;
  Access access_;
  std::vector<Counted> counted_;
  std::vector<Operand> operands_;
  std::vector<MpiOrdered> by_mpi_;
};

/// One block for each rank, each with a type of its own.
class TypedUserBlocks final : public Operands {
 public:
  explicit TypedUserBlocks(int ranks) { blocks_.reserve(static_cast<std::size_t>(ranks)); }
  /// Adds the next rank's block: `count` elements of `type` at `buffer`. If `count` is 0, the type need not be known.
  void add(const void* buffer, std::int64_t count, MPI_Datatype type, Access access, StagedBlocks& staged);

  bool fill() noexcept;
  void complete() noexcept;

  Operand of(int rank) const noexcept override { return blocks_[static_cast<std::size_t>(rank)].of(0); }
  std::int64_t bytes(int rank) const noexcept override { return blocks_[static_cast<std::size_t>(rank)].bytes(0); }

 private:
  std::vector<UserBlocks> blocks_;
};

}  // namespace bestride::inline interpose
