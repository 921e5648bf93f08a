// SPDX-License-Identifier: Apache-2.0
// topology_discover [--fail CALL NTH] EXPECTED: the result of discovery with the launcher's settings, without the
// preload library.
//
// EXPECTED is "none", or one digit per rank for its node and, after a '/', one for its group: "0101/0000" stands for
// two nodes in round-robin placement; digits for the cores may follow after another '/'. "unwanted": no rank requests
// the topology, which costs two MPI_Allreduce and gives one node. The topology file is BESTRIDE_TOPOLOGY on each rank.
// --fail: on the last rank the NTH use of that function returns an error, without other effects on its peers; CALL
// "memory": allocations fail on the last rank. Rank 0 prints "problem: ...", which a test checks.
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "model/discover.hpp"

namespace {

using bestride::DiscoverCalls;
using bestride::Discovery;

DiscoverCalls library;
int rank, ranks;
int failures = 0;
int open_comms = 0;
int agreements = 0;
std::string failing;
int failing_use = 0;

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "FAILED on rank %d: %s\n", rank, what);
  ++failures;
}

/// Whether this use of the function must fail.
bool fails(const char* name) { return rank == ranks - 1 && failing == name && --failing_use == 0; }

// The MPI library's functions, counted. A function that fails still communicates first, so that its peers do not hang.
int split_type(MPI_Comm comm, int kind, int key, MPI_Info info, MPI_Comm* made) {
  const int error = library.comm_split_type(comm, kind, key, info, made);
  if (fails("split_type")) {
    library.comm_free(made);
    *made = MPI_COMM_NULL;
    return MPI_ERR_OTHER;
  }
  ++open_comms;
  return error;
}
int comm_free(MPI_Comm* comm) {
  --open_comms;
  const int error = library.comm_free(comm);
  return fails("comm_free") ? MPI_ERR_OTHER : error;
}
int bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const int error = library.bcast(data, count, type, root, comm);
  return fails("bcast") ? MPI_ERR_OTHER : error;
}
int allgather(const void* out, int count, MPI_Datatype type, void* in, int in_count, MPI_Datatype in_type,
              MPI_Comm comm) {
  const int error = library.allgather(out, count, type, in, in_count, in_type, comm);
  return fails("allgather") ? MPI_ERR_OTHER : error;
}
int allreduce(const void* out, void* in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  ++agreements;
  return library.allreduce(out, in, count, type, op, comm);
}

/// "0101/0000", optionally with the cores.
std::string text_of(const bestride::Topology& topology, bool with_cores) {
  std::string nodes, groups, cores;
  for (int r = 0; r < topology.ranks(); ++r) {
    nodes += static_cast<char>('0' + topology.node_of(r));
    groups += static_cast<char>('0' + topology.group_of(topology.node_of(r)));
    cores += static_cast<char>('0' + topology.cores().part_of(r));
  }
  return nodes + "/" + groups + (with_cores ? "/" + cores : "");
}

void check_alike(const std::string& text) {
  char mine[64] = "", first[64] = "";
  std::snprintf(mine, sizeof mine, "%s", text.c_str());
  std::memcpy(first, mine, sizeof first);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  check(std::strcmp(mine, first) == 0, "the ranks have different topologies");
}

void check_binding(const bestride::Topology& topology) {
  for (int a = 0; a < ranks; ++a)
    for (int b = 0; b < ranks; ++b)
      if (topology.cores().part_of(a) == topology.cores().part_of(b))
        check(topology.node_of(a) == topology.node_of(b), "a core on two nodes");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int next = 1;
  if (argc > 3 && std::strcmp(argv[1], "--fail") == 0) {
    failing = argv[2];
    failing_use = std::atoi(argv[3]);
    next = 4;
  }
  const std::string expected = next < argc ? argv[next] : "";
  check(library.resolve([](const char* name) { return dlsym(RTLD_DEFAULT, name); }), "a function is missing");
  DiscoverCalls calls = library;
  calls.comm_split_type = split_type;
  calls.comm_free = comm_free;
  calls.bcast = bcast;
  calls.allgather = allgather;
  calls.allreduce = allreduce;

  MPI_Errhandler before, after;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  const char* file = std::getenv("BESTRIDE_TOPOLOGY");
  // One rank requests the topology; all ranks get it.
  const Discovery discovery = discover(calls, {.wanted = expected != "unwanted" && rank == ranks - 1,
                                               .file = file ? file : "",
                                               .sound = failing != "memory" || rank != ranks - 1});
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  check(before == after, "the error handler of MPI_COMM_WORLD changed");
  check(open_comms == 0, "a communicator was not freed");
  if (expected == "unwanted") check(agreements == 2, "more than two agreements");

  const std::string text = discovery.topology
                               ? text_of(*discovery.topology, std::count(expected.begin(), expected.end(), '/') == 2)
                               : "none";
  if (rank == 0) {
    std::printf("problem: %s\n", discovery.problem.c_str());
    if (text != (expected == "unwanted" ? std::string("00/00") : expected))
      std::fprintf(stderr, "got %s instead of %s\n", text.c_str(), expected.c_str());
  } else {
    check(discovery.problem.empty(), "a problem on a rank other than 0");
  }
  check(text == (expected == "unwanted" ? std::string("00/00") : expected), "another topology");
  check_alike(text);
  if (discovery.topology) check_binding(*discovery.topology);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
