// SPDX-License-Identifier: Apache-2.0
#include "tests/transparency/operand.hpp"

#include <cstdint>

namespace bestride::test {
namespace {

MPI_Datatype resized(MPI_Datatype type, int ints) {
  MPI_Datatype made;
  MPI_Type_create_resized(type, 0, static_cast<MPI_Aint>(ints) * 2 * static_cast<MPI_Aint>(sizeof(int)), &made);
  MPI_Type_commit(&made);
  MPI_Type_free(&type);
  return made;
}

MPI_Datatype vector_of(int ints) {
  MPI_Datatype type;
  MPI_Type_vector(ints, 1, 2, MPI_INT, &type);
  return resized(type, ints);
}

MPI_Datatype list_of(int ints) {
  std::vector<int> places(static_cast<std::size_t>(ints));
  for (int i = 0; i < ints; ++i) places[static_cast<std::size_t>(i)] = 2 * i;
  MPI_Datatype type;
  MPI_Type_create_indexed_block(ints, 1, places.data(), MPI_INT, &type);
  return resized(type, ints);
}

MPI_Datatype deep_int() {
  MPI_Datatype deep, type;
  MPI_Type_contiguous(1, MPI_INT, &deep);
  for (int level = 0; level < 1005; ++level, deep = type) {
    MPI_Type_contiguous(1, deep, &type);
    MPI_Type_free(&deep);
  }
  MPI_Type_commit(&deep);
  return deep;
}

void inspect(MPI_Datatype type) {
  MPI_Datatype outer, inner;
  MPI_Type_contiguous(2, type, &outer);
  MPI_Type_commit(&outer);
  int count = 0;
  MPI_Aint address;
  MPI_Type_get_contents(outer, 1, 0, 1, &count, &address, &inner);
  MPI_Type_free(&inner);
  MPI_Type_free(&outer);
}

}  // namespace

Operand::Operand(Naming naming, int ints, int blocks) : ints_(static_cast<std::size_t>(ints)), count_(ints) {
  if (naming >= Naming::strided) {
    stride_ = 2;
    count_ = 1;
    type_ = naming == Naming::listed ? list_of(ints) : vector_of(ints);
  }
  data_.assign(ints_ * static_cast<std::size_t>(blocks) * stride_ + 32, -1);
  while (reinterpret_cast<std::uintptr_t>(address()) % 64 != 0) ++offset_;
  switch (naming) {
    case Naming::duplicate: MPI_Type_dup(MPI_INT, &type_); break;
    case Naming::contiguous:
      MPI_Type_contiguous(ints, MPI_INT, &type_);
      MPI_Type_commit(&type_);
      count_ = 1;
      break;
    case Naming::deep: type_ = deep_int(); break;
    case Naming::misaligned: ++offset_; break;
    case Naming::inspected: inspect(type_); break;
    case Naming::used_first: {
      std::vector<int> packed(ints_);
      int position = 0;
      MPI_Pack(address(), 1, type_, packed.data(), ints * static_cast<int>(sizeof(int)), &position, MPI_COMM_SELF);
      break;
    }
    default: break;
  }
}

Operand::~Operand() {
  if (type_ != MPI_INT) MPI_Type_free(&type_);
}

int& Operand::at(int block, int index) {
  return data_[offset_ + (static_cast<std::size_t>(block) * ints_ + static_cast<std::size_t>(index)) * stride_];
}

}  // namespace bestride::test
