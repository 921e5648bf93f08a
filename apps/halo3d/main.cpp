// SPDX-License-Identifier: Apache-2.0
// halo3d: a mini-app that exchanges halos as a stencil code does, and checks every value that it receives. It is plain
// MPI; any acceleration must come from outside.
#include <mpi.h>

#include <cstdio>
#include <exception>

#include "apps/common/text.hpp"
#include "gpu.hpp"
#include "report.hpp"
#include "sweep.hpp"

namespace {

using namespace halo3d;

enum ExitCode { good = 0, wrong_values = 1, bad_arguments = 2 };  // 2 also means: cannot run here

int run_one(const Options& options, int rank) {
  const CaseResult result = run_case(options, Grid(MPI_COMM_WORLD, options.grid, options.periodic));
  if (!result.first_wrong.empty()) std::fprintf(stderr, "halo3d: %s\n", result.first_wrong.c_str());
  if (rank == 0) {
    if (options.json != "-") apps::write_text("-", as_text(options, result));
    if (!options.json.empty() && !apps::write_text(options.json, as_json(options, result)))
      std::fprintf(stderr, "halo3d: cannot write %s\n", options.json.c_str());
  }
  return result.wrong ? wrong_values : good;
}

/// Collective. The reason against device pointers on any rank, or an empty string. Afterwards Gpu::get() has the rank's
/// device.
std::string complaint_about_device(bool force) {
  MPI_Comm node = MPI_COMM_NULL;
  int local_rank = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &local_rank);
  MPI_Comm_free(&node);
  std::string error = force || takes_device_pointers() ? ""
                                                       : "this MPI is neither GPU-aware nor with the preload, so "
                                                         "it can't take device pointers (--force: all the same)";
  if (error.empty()) error = Gpu::open(local_rank);
  // All ranks stop; the first rank with an error prints it.
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int first = error.empty() ? ranks : rank;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == ranks) return "";
  error.resize(512);
  MPI_Bcast(error.data(), 512, MPI_CHAR, first, MPI_COMM_WORLD);
  return "--device: " + std::string(error.c_str());
}

int run(const std::vector<std::string>& arguments) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Parsed parsed = parse(arguments);
  if (parsed.options && parsed.options->help) {
    if (rank == 0) apps::write_text("-", usage());
    return good;
  }
  if (parsed.options && !parsed.options->sweep) parsed.error = validate(*parsed.options, ranks);
  if (parsed.error.empty() && parsed.options->device) parsed.error = complaint_about_device(parsed.options->force);
  if (!parsed.error.empty()) {
    if (rank == 0) std::fprintf(stderr, "halo3d: %s\n", parsed.error.c_str());
    return bad_arguments;
  }
  if (parsed.options->sweep) return sweep(MPI_COMM_WORLD, *parsed.options) ? wrong_values : good;
  return run_one(*parsed.options, rank);
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int code = bad_arguments;
  try {
    code = run({arguments + 1, arguments + count});
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "halo3d: %s\n", failed.what());
    MPI_Abort(MPI_COMM_WORLD, bad_arguments);  // the other ranks are waiting
  }
  MPI_Finalize();
  return code;
}
