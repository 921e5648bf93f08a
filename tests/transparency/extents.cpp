// SPDX-License-Identifier: Apache-2.0
// A long MPI_Allgatherv whose members receive with types of one extent, of which only rank 0's can be respelled.
// MPICH 4.0.2 cuts the blocks into pieces by the extent of each rank's type, so the members must not see another
// extent. Three ranks: MPICH uses its ring algorithm.
#include <array>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int elements = 4000, parts = 3;
constexpr std::size_t doubles_per_element = 6;

/// Three doubles in 48 bytes: at equal distances on rank 0, at unequal ones elsewhere.
std::array<int, parts> places() {
  return world_rank() == 0 ? std::array<int, parts>{0, 2, 4} : std::array<int, parts>{0, 1, 5};
}

MPI_Datatype make_type() {
  std::array<int, parts> displacements = places();
  MPI_Datatype three, type;
  MPI_Type_create_indexed_block(parts, 1, displacements.data(), MPI_DOUBLE, &three);
  MPI_Type_create_resized(three, 0, doubles_per_element * sizeof(double), &type);
  MPI_Type_commit(&type);
  MPI_Type_free(&three);
  return type;
}

double number(int rank, int element, int part) { return rank * 1e6 + element * parts + part; }

}  // namespace

MPI_CASE(long_allgatherv_of_types_with_one_extent) {
  watch_for_hang();
  const int ranks = world_size();
  MPI_Datatype type = make_type();
  const std::array<int, parts> at = places();
  std::vector<double> out, in(elements * doubles_per_element * static_cast<std::size_t>(ranks));
  for (int i = 0; i < elements; ++i)
    for (int part = 0; part < parts; ++part) out.push_back(number(world_rank(), i, part));
  std::vector<int> counts(static_cast<std::size_t>(ranks), elements), displacements;
  for (int i = 0; i < ranks; ++i) displacements.push_back(i * elements);
  for (int round = 0; round < 3; ++round) {
    in.assign(in.size(), -1);
    MPI_Allgatherv(out.data(), elements * parts, MPI_DOUBLE, in.data(), counts.data(), displacements.data(), type,
                   MPI_COMM_WORLD);
    int wrong = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < elements; ++i) {
        std::array<double, doubles_per_element> expected;
        expected.fill(-1);
        for (int part = 0; part < parts; ++part)
          expected[static_cast<std::size_t>(at[static_cast<std::size_t>(part)])] = number(rank, i, part);
        const std::size_t first = static_cast<std::size_t>(rank * elements + i) * doubles_per_element;
        for (std::size_t j = 0; j < doubles_per_element; ++j) wrong += in[first + j] != expected[j];
      }
    CHECK_EQUAL(0, wrong);
  }
  MPI_Type_free(&type);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
