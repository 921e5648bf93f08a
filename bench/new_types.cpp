// SPDX-License-Identifier: Apache-2.0
// new_types: the cost of a type that is made for one message. A plain MPI program for one process. One JSON line for
// each case, median nanoseconds: to make, commit and free the type (`made`), the same with an MPI_Pack in between
// (`packed`), and to pack with a type that is kept (`kept`).
#include <mpi.h>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "base/median.hpp"

namespace {

struct Case {
  std::string name;
  /// `number`: of the type; types of "unseen" cases differ from the 4095 before them.
  std::function<void(MPI_Datatype*, int number)> make;
  int typical = 0;  ///< the number of a type of mean size
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int count : {16, 64, 256, 1024, 4096})
    all.push_back({"vector of " + std::to_string(count) + " x 2 doubles",
                   [count](MPI_Datatype* type, int) { MPI_Type_vector(count, 2, 8, MPI_DOUBLE, type); }});
  for (const int side : {8, 32, 64})
    all.push_back({"face of " + std::to_string(side) + "^3 doubles", [side](MPI_Datatype* type, int) {
                     const int sizes[] = {side, side, side}, parts[] = {side, side, 1}, begin[] = {0, 0, 1};
                     MPI_Type_create_subarray(3, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, type);
                   }});
  all.push_back({"hvector of vectors, 16 x 16 doubles", [](MPI_Datatype* type, int) {
                   MPI_Datatype row;
                   MPI_Type_vector(16, 1, 4, MPI_DOUBLE, &row);
                   MPI_Type_create_hvector(16, 1, 1024, row, type);
                   MPI_Type_free(&row);
                 }});
  all.push_back({"20 indexed blocks of 6 doubles", [](MPI_Datatype* type, int) {
                   int displacements[20];
                   for (int i = 0; i < 20; ++i) displacements[i] = 33 * i;
                   MPI_Type_create_indexed_block(20, 6, displacements, MPI_DOUBLE, type);
                 }});
  all.push_back({"unseen vectors of 1024 to 1279 x 2 doubles",
                 [](MPI_Datatype* type, int number) {
                   MPI_Type_vector(1024 + number % 256, 2, 4 + number / 256 % 16, MPI_DOUBLE, type);
                 },
                 128 + 8 * 256});
  all.push_back({"unseen subarrays of 64 x 64 x 8 doubles",
                 [](MPI_Datatype* type, int number) {
                   const int sizes[] = {64, 64, 8}, begin[] = {0, number / 1024 % 4, 0};
                   const int parts[] = {24 + number % 16, 24 + number / 16 % 16, 1 + number / 256 % 4};
                   MPI_Type_create_subarray(3, sizes, parts, begin, MPI_ORDER_C, MPI_DOUBLE, type);
                 },
                 8 + 8 * 16 + 2 * 256});
  return all;
}

double median_ns(const std::function<void()>& run) {
  constexpr int samples = 41;
  const double start = MPI_Wtime();
  int repeats = 0;
  for (; repeats < 20 || MPI_Wtime() - start < 2e-3; ++repeats) run();
  std::vector<double> seconds;
  for (int s = 0; s < samples; ++s) {
    const double before = MPI_Wtime();
    for (int i = 0; i < repeats; ++i) run();
    seconds.push_back((MPI_Wtime() - before) / repeats);
  }
  return bestride::median_of(seconds) * 1e9;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  std::vector<double> memory(64 * 64 * 64 + 65536, 1.0), packed(65536);
  for (const Case& each : cases()) {
    MPI_Datatype kept;
    each.make(&kept, each.typical);
    MPI_Type_commit(&kept);
    int bytes = 0;
    MPI_Type_size(kept, &bytes);
    const auto pack = [&](MPI_Datatype type) {
      int position = 0;
      MPI_Pack(memory.data(), 1, type, packed.data(), static_cast<int>(8 * packed.size()), &position, MPI_COMM_WORLD);
    };
    int number = 0;
    const auto make = [&](bool use) {
      MPI_Datatype type;
      each.make(&type, number++ % 4096);
      MPI_Type_commit(&type);
      if (use) pack(type);
      MPI_Type_free(&type);
    };
    std::printf("{\"case\":\"%s\",\"bytes\":%d,\"made\":%.1f,\"packed\":%.1f,\"kept\":%.1f}\n", each.name.c_str(),
                bytes, median_ns([&] { make(false); }), median_ns([&] { make(true); }), median_ns([&] { pack(kept); }));
    MPI_Type_free(&kept);
  }
  MPI_Finalize();
}
