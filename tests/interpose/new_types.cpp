// SPDX-License-Identifier: Apache-2.0
// new_types ROUNDS: in each round seven types are made, used to pack and unpack, and freed, as by a solver that makes a
// type for each message; one of them is a long index list, which takes longer to decode than two messages can gain.
// Then such a list is kept and used to pack, ROUNDS times. All bytes are compared.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

namespace {

constexpr int length = 4096;  // numbers in memory

/// A kind of type, and the offsets of its numbers in doubles.
struct Kind {
  std::function<void(MPI_Datatype*)> make;
  std::vector<int> offsets;
};

std::vector<int> blocks(int count, int block, int stride, int begin = 0) {
  std::vector<int> offsets;
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < block; ++j) offsets.push_back(begin + i * stride + j);
  return offsets;
}

constexpr int list_blocks = 200;
void make_list(MPI_Datatype* type) {
  int displacements[list_blocks];
  for (int i = 0; i < list_blocks; ++i) displacements[i] = 7 * i + 3;
  MPI_Type_create_indexed_block(list_blocks, 2, displacements, MPI_DOUBLE, type);
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  all.push_back({[](MPI_Datatype* type) { MPI_Type_vector(60, 2, 9, MPI_DOUBLE, type); }, blocks(60, 2, 9)});
  all.push_back({[](MPI_Datatype* type) {
                   // A row of another type, which is freed before the type is used.
                   MPI_Datatype row;
                   MPI_Type_contiguous(2, MPI_DOUBLE, &row);
                   MPI_Type_create_hvector(60, 1, 72 + 8, row, type);
                   MPI_Type_free(&row);
                 },
                 blocks(60, 2, 10)});
  all.push_back({[](MPI_Datatype* type) {
                   const int sizes[] = {50, 40}, parts[] = {50, 3}, begin[] = {0, 7};
                   MPI_Type_create_subarray(2, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, type);
                 },
                 blocks(50, 3, 40, 7)});
  all.push_back({[](MPI_Datatype* type) {
                   int displacements[20];
                   for (int i = 0; i < 20; ++i) displacements[i] = 33 * i + 5;
                   MPI_Type_create_indexed_block(20, 6, displacements, MPI_DOUBLE, type);
                 },
                 blocks(20, 6, 33, 5)});
  all.push_back({[](MPI_Datatype* type) {
                   const int lengths[] = {32, 64};
                   const MPI_Aint displacements[] = {0, 800};
                   const MPI_Datatype types[] = {MPI_DOUBLE, MPI_DOUBLE};
                   MPI_Datatype both;
                   MPI_Type_create_struct(2, lengths, displacements, types, &both);
                   MPI_Type_create_resized(both, 0, 2000, type);
                   MPI_Type_free(&both);
                 },
                 {}});
  for (int j = 0; j < 96; ++j) all.back().offsets.push_back(j < 32 ? j : 68 + j);
  all.push_back({make_list, blocks(list_blocks, 2, 7, 3)});
  // Too small to be looked up at its first use.
  all.push_back({[](MPI_Datatype* type) { MPI_Type_vector(6, 2, 9, MPI_DOUBLE, type); }, blocks(6, 2, 9)});
  return all;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  const int rounds = count > 1 ? std::atoi(words[1]) : 100;
  const std::vector<Kind> all = kinds();
  std::vector<double> memory(length), read(length);
  int wrong = 0;
  for (int round = 0; round < rounds; ++round)
    for (const Kind& kind : all) {
      for (int i = 0; i < length; ++i) memory[static_cast<std::size_t>(i)] = 1000.0 * round + i;
      MPI_Datatype type;
      kind.make(&type);
      MPI_Type_commit(&type);
      std::vector<double> packed(kind.offsets.size());
      const int bytes = static_cast<int>(8 * packed.size());
      int position = 0;
      MPI_Pack(memory.data(), 1, type, packed.data(), bytes, &position, MPI_COMM_WORLD);
      wrong += position != bytes;
      std::fill(read.begin(), read.end(), -1.0);
      std::vector<double> expected = read;
      for (std::size_t i = 0; i < packed.size(); ++i) {
        const auto at = static_cast<std::size_t>(kind.offsets[i]);
        wrong += packed[i] != memory[at];
        expected[at] = memory[at];
      }
      position = 0;
      MPI_Unpack(packed.data(), bytes, &position, read.data(), 1, type, MPI_COMM_WORLD);
      wrong += std::memcmp(read.data(), expected.data(), sizeof(double) * length) != 0;
      MPI_Type_free(&type);
    }
  MPI_Datatype kept;
  make_list(&kept);
  MPI_Type_commit(&kept);
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> packed(2 * list_blocks, -1.0);
    int position = 0;
    MPI_Pack(memory.data(), 1, kept, packed.data(), 16 * list_blocks, &position, MPI_COMM_WORLD);
    for (std::size_t i = 0; i < packed.size(); ++i) wrong += packed[i] != memory[i / 2 * 7 + 3 + i % 2];
  }
  MPI_Type_free(&kept);
  std::printf("%d types, %d wrong\n", rounds * static_cast<int>(all.size()), wrong);
  MPI_Finalize();
  return wrong != 0 || rounds < 1;
}
