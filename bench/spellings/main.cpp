// SPDX-License-Identifier: Apache-2.0
// spellings [--seconds S] [CALL...]: the gain of a call from an equivalent type that the MPI library handles faster,
// written by hand, without the preload library. Two ranks. For each call, shape and size, four variants take turns:
// both sides as users write them, the sending side respelled, the receiving side respelled, both respelled. One JSON
// line each: median microseconds per call.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/median.hpp"
#include "calls.hpp"

namespace {

using namespace spellings;

struct Variant {
  const char* name;
  bool out, in;
};
constexpr Variant variants[] = {
    {"forward", false, false}, {"send", true, false}, {"receive", false, true}, {"both", true, true}};

double run(Call& call, const Side& out, const Side& in, int times) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < times; ++i) call(out, in);
  MPI_Barrier(MPI_COMM_WORLD);
  return (MPI_Wtime() - start) / times;
}

void measure(const NamedCall& named, const Shape& shape, int payload, char* out_memory, char* in_memory,
             double seconds) {
  Call& call = *named.call;
  Side out[2] = {{out_memory, call.many_out() ? shape.tiled : shape.plain, shape.step},
                 {out_memory, shape.respelled, shape.step}};
  Side in[2] = {{in_memory, call.many_in() ? shape.tiled : shape.plain, shape.step},
                {in_memory, shape.respelled, shape.step}};
  run(call, out[0], in[0], 2);
  constexpr double sample_s = 400e-6;
  int times = int(std::clamp(sample_s / run(call, out[0], in[0], 2), 2.0, 64.0));
  MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
  std::vector<double> samples[4];
  const double start = MPI_Wtime();
  for (int more = 1; more;) {
    for (int v = 0; v < 4; ++v) samples[v].push_back(run(call, out[variants[v].out], in[variants[v].in], times));
    more = MPI_Wtime() - start < seconds;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return;
  std::printf("{\"call\": \"%s\", \"shape\": \"%s\", \"bytes\": %d, \"samples\": %zu", named.name.c_str(),
              shape.name.c_str(), payload, samples[0].size());
  for (int v = 0; v < 4; ++v) std::printf(", \"%s_us\": %.3f", variants[v].name, bestride::median_of(samples[v]) * 1e6);
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  MPI_Init(&count, &arguments);
  int ranks = 0, rank = 0, at = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  double seconds = 0.03;
  if (at + 1 < count && std::strcmp(arguments[at], "--seconds") == 0) seconds = std::atof(arguments[at + 1]), at += 2;
  if (ranks != 2) {
    if (rank == 0) std::fprintf(stderr, "spellings: runs on 2 ranks, not %d\n", ranks);
    MPI_Finalize();
    return 2;
  }
  // The nested type spans four times its payload, and there are two peers.
  constexpr int largest = 1 << 20;
  std::vector<char> out(10 * largest), in(10 * largest), window(5 * largest);
  {
    const Windows windows(window.data(), MPI_Aint(window.size()));
    const std::vector<NamedCall> calls = all_calls(windows);
    for (const int payload : {4 << 10, 64 << 10, largest})
      for (const Shape& shape : shapes_of(payload))
        for (const NamedCall& call : calls) {
          bool wanted = at == count;
          for (int i = at; i < count; ++i) wanted = wanted || call.name.starts_with(arguments[i]);
          if (wanted && call.call->takes(shape)) measure(call, shape, payload, out.data(), in.data(), seconds);
        }
  }
  MPI_Finalize();
  return 0;
}
