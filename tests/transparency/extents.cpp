// SPDX-License-Identifier: Apache-2.0
// A long allgatherv whose members receive with types of one extent, of which only rank 0's can be respelled.
// MPICH 4.0.2 cuts the blocks into pieces by the extent of each rank's type, so the members must not see another
// extent. Three ranks: MPICH uses its ring algorithm.
#include <array>
#include <vector>

#include "tests/support/harness.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

constexpr int elements = 4000, parts = 3;
/// What rank 1 sends. MPI_Iallgatherv cuts blocks into pieces only if one of them has less than 32 KiB.
constexpr int short_elements = 100;
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

int elements_of(int rank) { return rank == 1 ? short_elements : elements; }

double number(int rank, int element, int part) { return rank * 1e6 + element * parts + part; }

/// Runs `exchange` three times, and compares each element and the gaps between them.
template <class Exchange>
void compare(Exchange exchange) {
  watch_for_hang();
  const int ranks = world_size();
  MPI_Datatype type = make_type();
  const std::array<int, parts> at = places();
  std::vector<double> out, in(elements * doubles_per_element * static_cast<std::size_t>(ranks));
  for (int i = 0; i < elements_of(world_rank()); ++i)
    for (int part = 0; part < parts; ++part) out.push_back(number(world_rank(), i, part));
  std::vector<int> counts, displacements;
  for (int i = 0; i < ranks; ++i) {
    counts.push_back(elements_of(i));
    displacements.push_back(i * elements);
  }
  for (int round = 0; round < 3; ++round) {
    in.assign(in.size(), -1);
    exchange(out, in.data(), counts.data(), displacements.data(), type);
    int wrong = 0;
    for (int rank = 0; rank < ranks; ++rank)
      for (int i = 0; i < elements_of(rank); ++i) {
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

}  // namespace

MPI_CASE(long_allgatherv_of_types_with_one_extent) {
  compare(
      [](const std::vector<double>& out, double* in, const int* counts, const int* displacements, MPI_Datatype type) {
        MPI_Allgatherv(out.data(), static_cast<int>(out.size()), MPI_DOUBLE, in, counts, displacements, type,
                       MPI_COMM_WORLD);
      });
}

MPI_CASE(long_iallgatherv_of_types_with_one_extent) {
  compare(
      [](const std::vector<double>& out, double* in, const int* counts, const int* displacements, MPI_Datatype type) {
        MPI_Request request;
        MPI_Iallgatherv(out.data(), static_cast<int>(out.size()), MPI_DOUBLE, in, counts, displacements, type,
                        MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      });
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
