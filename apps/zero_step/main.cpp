// SPDX-License-Identifier: Apache-2.0
// zero_step: a training step as in ZeRO stage 3, with nothing but MPI collectives, checked against the result of a
// single rank. It is plain MPI; any acceleration must come from outside.
#include <mpi.h>

#include <cstdio>
#include <exception>

#include "apps/common/text.hpp"
#include "report.hpp"

namespace {

using namespace zero_step;

enum ExitCode { good = 0, wrong_values = 1, bad_arguments = 2 };

int run(const std::vector<std::string>& arguments) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Parsed parsed = parse(arguments);
  if (parsed.options && parsed.options->help) {
    if (rank == 0) apps::write_text("-", usage());
    return good;
  }
  std::vector<Unit> units;
  if (parsed.options) units = make_units(*parsed.options, ranks), parsed.error = validate(units);
  if (!parsed.error.empty()) {
    if (rank == 0) std::fprintf(stderr, "zero_step: %s\n", parsed.error.c_str());
    return bad_arguments;
  }
  const Options& options = *parsed.options;
  const Outcome outcome = train(options, units);
  const Comparison comparison =
      options.verify ? compare_with_reference(options, units, outcome, rank, ranks) : Comparison{};
  if (!comparison.first_wrong.empty()) std::fprintf(stderr, "zero_step: %s\n", comparison.first_wrong.c_str());
  const Summary summary = summarize(units, outcome, comparison);
  if (rank == 0) {
    if (options.json != "-") apps::write_text("-", as_text(options, summary));
    if (!options.json.empty() && !apps::write_text(options.json, as_json(options, summary)))
      std::fprintf(stderr, "zero_step: cannot write %s\n", options.json.c_str());
  }
  return summary.comparison.wrong ? wrong_values : good;
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int code = bad_arguments;
  try {
    code = run({arguments + 1, arguments + count});
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "zero_step: %s\n", failed.what());
    MPI_Abort(MPI_COMM_WORLD, bad_arguments);  // the other ranks are waiting
  }
  MPI_Finalize();
  return code;
}
