// SPDX-License-Identifier: Apache-2.0
// Blocking collectives whose way a profile decides (tests/hierarchical/measured_profile.cpp), with buffers in every
// kind of memory. All ranks must take the same way, wherever their buffers are.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/gpu/device_buffer.hpp"
#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

/// A call with a total of 64 KiB, in kinds of memory that differ between ranks.
void check(What what, Kind out_kind, Kind in_kind, int root) {
  const int whole = 16384, ranks = world_size();
  const bool blocks = what != What::broadcast && what != What::allreduce && what != What::reduce;
  std::vector<char> out(4 * whole), in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<char>(static_cast<int>(i) * 31 + world_rank() * 77), in[i] = static_cast<char>(~out[i]);
  DeviceBuffer there_out(out_kind, out.size()), there_in(in_kind, in.size());
  there_out.write(out);
  there_in.write(in);
  Arguments a;
  a.out = there_out.data();
  a.in = there_in.data();
  a.out_count = a.in_count = blocks ? whole / ranks : whole;
  a.out_type = a.in_type = MPI_INT;
  a.op = MPI_SUM;
  a.root = root;
  a.comm = MPI_COMM_WORLD;
  a.give_counts(std::vector<int>(static_cast<std::size_t>(ranks), whole / ranks));
  const std::string text = std::string(name(what)) + ", sent from " + name(out_kind) + ", received in " +
                           name(in_kind) + ", root " + std::to_string(root);
  const int calls = calls_seen_by_library();
  CHECK_EQUAL(MPI_SUCCESS, complete(what, {Wait::in_call, false, false}, a));
  if (calls_seen_by_library() != calls + (what != What::allgather))
    fail_check(__FILE__, __LINE__, text + ": not as the profile says");
  a.out = out.data();
  a.in = in.data();
  CHECK_EQUAL(MPI_SUCCESS, complete(what, {Wait::in_call, false, true}, a));
  if (there_in.read() != in) fail_check(__FILE__, __LINE__, text + ": the receive buffer differs");
}

}  // namespace

MPI_CASE(any_memory) {
  constexpr What measured[] = {What::allgather,
                               What::broadcast,
                               What::gather,
                               What::scatter,
                               What::alltoall,
                               What::reduce_scatter,
                               What::reduce_scatter_block,
                               What::allreduce,
                               What::reduce};
  for (const What what : measured)
    for (const int root : {0, world_size() - 1})
      for (std::size_t salt = 0; salt < 9; ++salt) {
        const auto shifted = salt + static_cast<std::size_t>(world_rank());
        check(what, every_kind[shifted % 3], every_kind[(salt / 3 + shifted) % 3], root);
      }
}

MPI_CASE(only_one_rank_has_device_memory) {
  for (const What what : {What::allgather, What::broadcast, What::allreduce, What::gather})
    for (int alone = 0; alone < world_size(); ++alone) {
      const Kind kind = world_rank() == alone ? Kind::device : Kind::host;
      check(what, kind, kind, 0);
    }
}

int main(int argc, char** argv) {
  if (argc < 2 || std::string(argv[1]) != "--list")
    if (!start_cuda()) return 1;
  return run_cases(argc, argv);
}
