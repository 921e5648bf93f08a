// SPDX-License-Identifier: Apache-2.0
#pragma once
// Blocks of ints as the operand of a collective. Each rank may describe the same signature by another datatype.
#include <mpi.h>

#include <vector>

namespace bestride::test {

enum class Naming {
  predefined,  ///< MPI_INT
  duplicate,   ///< MPI_Type_dup(MPI_INT), which is committed when created
  contiguous,  ///< one element that contains all ints
  deep,        ///< MPI_INT nested in 1005 constructors
  misaligned,  ///< MPI_INT, 4 bytes off a cache line
  strided,     ///< every second int, by MPI_Type_vector
  listed,      ///< the same layout, by MPI_Type_create_indexed_block
  inspected,   ///< the same layout; a handle to it from MPI_Type_get_contents of an outer type is freed
  used_first,  ///< the same layout; used by MPI_Pack before the collective
};

/// `blocks` consecutive blocks of `ints` ints each.
class Operand {
 public:
  Operand(Naming naming, int ints, int blocks);
  ~Operand();
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  void* address() { return data_.data() + offset_; }
  /// Count of one block, in elements of its type.
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
