// SPDX-License-Identifier: Apache-2.0
#pragma once
// A user's blocks of (buffer, count, datatype) as Operands, whatever the type. A collective can't be left to MPI on one rank alone, so a
// type for which there is no packer goes through MPI_Pack, into buffers of its whole size.
#include <mpi.h>

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "collectives/operand.hpp"
#include "interpose/back/hierarchical/staged_blocks.hpp"
#include "interpose/back/plan.hpp"

namespace bestride {

/// What one element of a known type is: a predefined one, or one whose commit was seen. One that this rank alone could not remember is known,
/// too: others count on it.
struct ElementSize {
  std::int64_t packed = -1;  ///< bytes; -1: not known, so the call is MPI's
  std::int64_t extent = 0;
};
ElementSize element_size(MPI_Datatype type) noexcept;
/// The one predefined type that all of a known, not predefined type is made of; MPI_DATATYPE_NULL: there are several.
MPI_Datatype leaf_of(MPI_Datatype type) noexcept;

/// One block for each rank.
class UserBlocks final : public Operands {
 public:
  /// `type` is known; the block of each rank is the elements `blocks[rank]` from `buffer` on, whose bytes are the operation's where they lie, or
  /// in `staged`, which outlives this. `only`, `coding`: as there. May throw what that throws.
  UserBlocks(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access, StagedBlocks& staged, int only = -1,
             const Coding* coding = nullptr);
  UserBlocks(UserBlocks&& other) noexcept;
  ~UserBlocks();

  /// Before what is read is read, at each start. False: MPI could not pack it.
  bool fill() noexcept;
  /// After all is written.
  void settle() noexcept;

  Operand of(int rank) const noexcept override { return operands_[static_cast<std::size_t>(rank)]; }
  std::int64_t bytes(int rank) const noexcept override { return operands_[static_cast<std::size_t>(rank)].bytes(); }
  std::int64_t all_bytes() const noexcept;
  /// Who makes and reads the codes of these numbers; nullptr: whoever has the operands.
  DeviceCodes* codes() const noexcept { return codes_; }

 private:
  struct Counted {
    std::int64_t count;
    PlanRef plan;  ///< none: contiguous, or only MPI can pack it
    bool by_mpi;
  };
  /// A block that MPI packs, and where.
  struct ByMpi {
    std::byte* place;
    std::int64_t count;
    std::unique_ptr<std::byte[]> packed;
  };
  UserBlocks(MPI_Datatype type, Access access) : type_(type), element_(element_size(type)), access_(access) {}
  /// The next rank's block begins at `buffer` + `elements` extents.
  void add(const void* buffer, std::int64_t elements, std::int64_t count);
  const Counted& counted(std::int64_t count);

  MPI_Datatype type_;
  MPI_Datatype own_type_ = MPI_DATATYPE_NULL;  ///< a duplicate, where MPI packs
  ElementSize element_;
  Access access_;
  std::vector<Counted> counted_;
  std::vector<Operand> operands_;
  std::vector<ByMpi> by_mpi_;
  DeviceCodes* codes_ = nullptr;
};

}  // namespace bestride
