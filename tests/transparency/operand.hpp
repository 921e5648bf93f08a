// SPDX-License-Identifier: Apache-2.0
#pragma once
// One signature that each rank describes in its own way: blocks of ints as an operand of a collective.
#include <mpi.h>

#include <vector>

namespace bestride::test {

enum class Naming {
  predefined,  ///< MPI_INT
  duplicate,   ///< MPI_Type_dup(MPI_INT), which MPI has committed
  contiguous,  ///< one element of all ints
  deep,        ///< MPI_INT below 1005 constructors
  misaligned,  ///< MPI_INT, 4 bytes off a cache line
  strided,     ///< every second int, by MPI_Type_vector
  listed,      ///< the same places, by MPI_Type_create_indexed_block
  inspected,   ///< the same places; the handle from MPI_Type_get_contents of a type made of it is freed
  used_first,  ///< the same places; packed with before
};

/// `blocks` blocks of `ints` ints each, one after the other.
class Operand {
 public:
  Operand(Naming naming, int ints, int blocks);
  ~Operand();
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  void* address() { return data_.data() + offset_; }
  /// Count and type of one block.
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }
  int& at(int block, int index);

 private:
  std::vector<int> data_;
  std::size_t offset_ = 0, stride_ = 1, ints_;
  int count_;
  MPI_Datatype type_ = MPI_INT;
};

}  // namespace bestride::test
