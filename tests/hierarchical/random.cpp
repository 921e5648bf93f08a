// SPDX-License-Identifier: Apache-2.0
// Random hierarchical collectives. The number of a case determines all its random values.
//
//   hierarchical_random [--seed N] [--cases N | --seconds N] [--least N] [--verbose]
// --least: the minimum number of elements, unless that is too much data.
// A failure is printed with the arguments that reproduce it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tests/hierarchical/moved.hpp"
#include "tests/hierarchical/reduced.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/random.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

using namespace bestride::test;

namespace {

struct Options {
  std::uint64_t seed = 1, cases = 200, seconds = 0;
  int least = 0;
  bool verbose = false;
};

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const auto number = [&] { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (word == "--seed") options.seed = number();
    if (word == "--cases") options.cases = number();
    if (word == "--seconds") options.seconds = number();
    if (word == "--least") options.least = static_cast<int>(number());
    if (word == "--verbose") options.verbose = true;
  }
  return options;
}

/// Rank 0's clock decides for all ranks.
bool time_is_up(double begun, std::uint64_t seconds) {
  int up = MPI_Wtime() - begun > static_cast<double>(seconds);
  PMPI_Bcast(&up, 1, MPI_INT, 0, MPI_COMM_WORLD);
  return up != 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const Options options = options_of(argc, argv);
  long failures = 0;
  std::uint64_t done = 0;
  {
    Groups groups;
    const UserOperations user;
    const double begun = MPI_Wtime();
    for (;; ++done) {
      if (options.seconds == 0 ? done == options.cases : time_is_up(begun, options.seconds)) break;
      const std::uint64_t seed = options.seed + done;
      Random random(seed * 31 + 7);
      if (random.chance(5)) groups.make_again(static_cast<int>(random.between(0, groups.count() - 1)));
      std::string told;
      const bool moves = random.chance(50);
      const auto tell = [&] {
        if (options.verbose && world_rank() == 0)
          std::printf("%llu %s\n", static_cast<unsigned long long>(seed), told.c_str()), std::fflush(stdout);
      };
      const std::string wrong = moves ? move_at_random(seed, groups, options.least, &told, tell)
                                      : reduce_at_random(seed, groups, user, options.least, &told, tell);
      if (!wrong.empty() && ++failures <= 10)
        std::fprintf(stderr, "FAILED rank %d, --seed %llu --cases 1 --least %d: %s: %s\n", world_rank(),
                     static_cast<unsigned long long>(seed), options.least, told.c_str(), wrong.c_str());
    }
  }
  long all = 0;
  PMPI_Allreduce(&failures, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (world_rank() == 0)
    std::printf("%llu cases from seed %llu, %ld failures, %d ranks\n", static_cast<unsigned long long>(done),
                static_cast<unsigned long long>(options.seed), all, world_size());
  MPI_Finalize();
  return all == 0 && done > 0 ? 0 : 1;
}
