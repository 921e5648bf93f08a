// SPDX-License-Identifier: Apache-2.0
#include "sweep.hpp"

#include <algorithm>
#include <cstdio>

#include "report.hpp"
#include "run_case.hpp"

namespace halo3d {
namespace {

/// Settings without their own loop alternate. Their periods have no common factor, so every pair of settings occurs.
void take_turn(Options& options, int turn) {
  options.storage = turn % 2 ? Storage::interleaved : Storage::separate;
  options.quantities = 1 + turn % 5;
  options.exchanged = 1 + turn % 7 % options.quantities;
  options.messages = turn / 2 % 2 ? Messages::separate : Messages::joined;
  options.element = turn / 4 % 2 ? Element::float32 : Element::float64;
  options.cells = {3 + turn % 3, 4 + turn % 11, 5 + turn % 13};
}

}  // namespace

long long sweep(MPI_Comm communicator, const Options& given) {
  int rank = 0, turn = 0;
  MPI_Comm_rank(communicator, &rank);
  const Grid wrapped(communicator, given.grid, true), bordered(communicator, given.grid, false);
  long long wrong = 0, checked = 0, exchanges = 0;
  for (const Method method : all_methods)
    for (const Spelling spelling : all_spellings)
      for (const int neighbors : {6, 26})
        for (const bool periodic : {true, false})
          for (int radius = 1; radius <= 3; ++radius) {
            Options options = given;
            take_turn(options, turn++);
            options.method = method, options.spelling = spelling;
            options.neighbors = neighbors, options.periodic = periodic, options.radius = radius;
            options.warmup = 0, options.iterations = std::min(2, given.iterations);
            const CaseResult result = run_case(options, periodic ? wrapped : bordered);
            wrong += result.wrong, checked += result.halo_checked, exchanges += result.exchanges;
            if (rank == 0 && result.wrong) std::printf("%lld wrong: %s\n", result.wrong, one_line(options).c_str());
            if (!result.first_wrong.empty()) std::fprintf(stderr, "halo3d: %s\n", result.first_wrong.c_str());
          }
  if (rank == 0)
    std::printf("halo3d: %d cases, %lld exchanges, %lld halo values checked, %lld wrong\n", turn, exchanges, checked,
                wrong);
  return wrong;
}

}  // namespace halo3d
