// SPDX-License-Identifier: Apache-2.0
#pragma once
// The arguments of one direction of a collective call, as one rank spells them.
#include "tests/fuzz/programs/context.hpp"
#include "tests/fuzz/programs/spelling.hpp"

namespace bestride::fuzz {

/// The blocks of one rank's send or receive buffer.
struct Side {
  std::vector<Shape> blocks;     ///< type and count of each
  std::vector<std::int64_t> at;  ///< bytes
  std::int64_t low = 0, high = 0;

  Runs runs(int block) const {
    return shifted(blocks[static_cast<std::size_t>(block)].runs(), at[static_cast<std::size_t>(block)]);
  }
  std::int64_t bytes() const;  ///< packed
  void measure();              ///< sets `low` and `high`
  void shift(std::int64_t bytes);
};

/// How a function describes the blocks of one direction.
enum class Blocks {
  one,      ///< buffer, count, type
  equal,    ///< the same arguments; the blocks follow each other
  varying,  ///< counts, displacements in elements
  typed,    ///< counts, displacements in bytes, types
};
inline bool displaced(Blocks blocks) { return blocks >= Blocks::varying; }

/// The two directions of one rank's call.
struct Layout {
  Side out, in;
  bool one_base = false;  ///< both are displacements from one address
  /// Moves the blocks of the direction that has displacements behind those of the other.
  void join(Blocks out_blocks, Blocks in_blocks);
};

class Arguments {
 public:
  Place buffer{};
  std::int64_t count = 0;
  List counts, at, types;
  MPI_Datatype type = MPI_DATATYPE_NULL;

  struct Given {
    Blocks blocks;
    bool out;         ///< direction
    bool derived;     ///< derived types are allowed
    bool wide;        ///< MPI_Count and MPI_Aint
    bool byte_aints;  ///< displacements in bytes are MPI_Aint in the narrow form, too (neighbor collectives)
    std::int64_t far =
        0;  ///< bytes by which `buffer` is moved; a multiple of the extent if displacements have that unit
    bool null_type =
        false;  ///< MPICH accepts MPI_DATATYPE_NULL for a typed block of no elements, or if there are no blocks
  };
  /// Sets all arguments, and creates the types. `memory`: nullptr if the side has no buffer.
  void set(Context& context, const Spelling& spelling, const Side& side, Buffer* memory, const Given& given);
  /// Makes all arguments invalid, in one of several ways.
  void make_unused(const Spelling& spelling, bool out);
  void free_types(Context& context);

 private:
  std::vector<Handle> handles_;
};

/// A number of bytes for Given::far; 0 if the rank does not use that spelling. `unit`: bytes of one displacement.
std::int64_t far_of(const Spelling& spelling, bool out, std::int64_t unit);
/// Computes for a while if the rank is late.
void be_late(Context& context, const Spelling& spelling);

}  // namespace bestride::fuzz
