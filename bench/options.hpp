// SPDX-License-Identifier: Apache-2.0
#pragma once
// Options of the benchmarks that are MPI programs with few of them.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/common/command_line.hpp"

namespace bench {

/// Applies the options. After MPI_Init. If one is not valid, all ranks end with exit code 2, and rank 0 prints the
/// reason and the names of the options; --help prints only these.
inline void apply_or_exit(int argc, char** argv, command_line::Valued valued) {
  bool help = false;
  const std::string problem = command_line::parse({argv + 1, argv + argc}, valued, {{"--help", [&] { help = true; }}});
  if (problem.empty() && !help) return;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::string names;
    for (const auto& [name, setter] : valued) names += " " + name;
    if (!problem.empty()) std::fprintf(stderr, "%s: %s\n", argv[0], problem.c_str());
    std::fprintf(problem.empty() ? stdout : stderr, "options with a value:%s\n", names.c_str());
  }
  MPI_Finalize();
  std::exit(problem.empty() ? 0 : 2);
}

/// The cases that --only NAME,... names; all if the option is not given.
class Only {
 public:
  command_line::Setter setter() {
    return [this](const std::string& text) { return names_ = command_line::split(text), std::string(); };
  }
  bool wants(const std::string& name) const {
    return names_.empty() || std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace bench
