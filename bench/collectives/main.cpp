// SPDX-License-Identifier: Apache-2.0
// collectives: time of collective operations with a preload library, which intercepts their MPI_ names, against the MPI
// library's own in the same run: blocking, and nonblocking with a loop that yields the core, because MPICH's blocking
// calls never do. One JSON line per case. Plain MPI: not linked with the library whose effect it measures.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "base/median.hpp"
#include "measure.hpp"

namespace {

using namespace collectives;

enum ExitCode { good = 0, wrong_values = 1, bad_arguments = 2 };

void print(const Options& options, const Operation& operation, Form form, int ranks, const Measurement& measured) {
  const bool tolerance = reduces(operation.kind()) && options.element == Element::float32;
  std::printf(
      "{\"collective\": \"%s\", \"bytes\": %zu, \"form\": \"%s\", \"type\": \"%s\", \"ranks\": %d, \"change\": %g",
      name_of(operation.kind()), operation.bytes(), name_of(form), name_of(options.element), ranks, options.change);
  for (const Variant variant : all_variants) {
    const std::vector<double>& seconds = measured.seconds[int(variant)];
    if (seconds.empty()) continue;
    std::printf(", \"%s_median_s\": %.9f, \"%s_s\": [", name_of(variant), bestride::median_of(seconds),
                name_of(variant));
    for (std::size_t i = 0; i < seconds.size(); ++i) std::printf("%s%.9f", i ? ", " : "", seconds[i]);
    std::printf("]");
  }
  if (!options.only)
    std::printf(", \"compared\": \"%s\", \"compared_count\": %lld, \"wrong\": %lld, \"disputed\": %lld",
                tolerance ? "within a tolerance" : "byte by byte", measured.compared, measured.wrong,
                measured.disputed);
  std::printf("}\n");
  std::fflush(stdout);
}

int run(const std::vector<std::string>& arguments) {
  int rank = 0, ranks = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Parsed parsed = parse(arguments);
  if (!parsed.options) {
    if (rank == 0) std::fprintf(stderr, "collectives: %s\n", parsed.error.c_str());
    return bad_arguments;
  }
  const Options& options = *parsed.options;
  if (options.help) {
    if (rank == 0) std::fputs(usage().c_str(), stdout);
    return good;
  }
  long long wrong = 0;
  for (const Kind kind : options.kinds)
    for (const std::size_t bytes : options.bytes)
      for (const Form form : options.forms) {
        const Operation operation(kind, bytes, options.element);
        const Measurement measured = measure(options, operation, form);
        if (rank == 0) print(options, operation, form, ranks, measured);
        wrong += measured.wrong;
      }
  return wrong ? wrong_values : good;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int code = bad_arguments;
  try {
    code = run({arguments + 1, arguments + count});
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "collectives: %s\n", failed.what());
    MPI_Abort(MPI_COMM_WORLD, bad_arguments);  // the other ranks wait
  }
  MPI_Finalize();
  return code;
}
