// SPDX-License-Identifier: Apache-2.0
// typed_calls: derived datatypes in calls of two ranks that are not plain messages: partitioned ones, one-sided ones
// and the MPI library's own collectives (BESTRIDE_COLLECTIVES=library). Prints "CALL TYPE BYTES median fastest":
// seconds for one call, or for one epoch of one-sided calls. Every received byte is compared before the calls are
// timed.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "base/median.hpp"

namespace {

int rank = 0;

struct Layout {
  const char* name;
  MPI_Datatype element;   ///< one element; its extent is a multiple of 8 bytes
  std::vector<int> used;  ///< numbers of the doubles of an element that are data
  int extent;             ///< in doubles
};

Layout layout_of(const char* name, int length, int extent) {
  MPI_Datatype block, element;
  MPI_Type_contiguous(length, MPI_DOUBLE, &block);
  MPI_Type_create_resized(block, 0, 8 * extent, &element);
  MPI_Type_commit(&element);
  MPI_Type_free(&block);
  Layout layout{name, element, {}, extent};
  for (int i = 0; i < length; ++i) layout.used.push_back(i);
  return layout;
}

Layout particle() {
  const int lengths[] = {3, 1};
  const MPI_Aint displacements[] = {0, 32};
  const MPI_Datatype members[] = {MPI_DOUBLE, MPI_DOUBLE};
  MPI_Datatype whole, element;
  MPI_Type_create_struct(2, lengths, displacements, members, &whole);
  MPI_Type_create_resized(whole, 0, 48, &element);
  MPI_Type_commit(&element);
  MPI_Type_free(&whole);
  return {"struct", element, {0, 1, 2, 4}, 6};
}

/// What rank `from` has in its array at `index`.
double value(int from, std::size_t index) { return 1e6 * (from + 1) + static_cast<double>(index); }

void fail(const char* call, const Layout& layout, std::size_t index, double found) {
  std::fprintf(stderr, "%s of %s: element %zu is %g\n", call, layout.name, index, found);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Element `element` of `received`, which began at `first` in the array of rank `from`.
void check(const char* call, const Layout& layout, const std::vector<double>& received, std::size_t elements,
           std::size_t place, int from, std::size_t first) {
  for (std::size_t element = 0; element < elements; ++element)
    for (const int used : layout.used) {
      const std::size_t there = element * static_cast<std::size_t>(layout.extent) + static_cast<std::size_t>(used);
      if (received[place + there] != value(from, first + there)) fail(call, layout, there, received[place + there]);
    }
}

void time_call(const char* call, const Layout& layout, std::size_t bytes, const std::function<void()>& run) {
  const int repeats = static_cast<int>(std::clamp<std::size_t>((4 << 20) / bytes, 4, 200));
  std::vector<double> samples;
  for (int sample = -1; sample < 15; ++sample) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < repeats; ++i) run();
    if (sample >= 0) samples.push_back((MPI_Wtime() - start) / repeats);
  }
  if (rank == 0)
    std::printf("%s %s %zu %.9g %.9g\n", call, layout.name, bytes, bestride::median_of(samples),
                *std::min_element(samples.begin(), samples.end()));
}

void measure(const Layout& layout, std::size_t bytes) {
  const std::size_t elements = bytes / (8 * layout.used.size());
  const std::size_t doubles = elements * static_cast<std::size_t>(layout.extent);
  const int count = static_cast<int>(elements);
  const int other = 1 - rank;
  std::vector<double> sent(2 * doubles), received(2 * doubles);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = value(rank, i);
  const auto clear = [&] { std::fill(received.begin(), received.end(), 0.0); };

  // Both ranks send at the same time, each message in four parts.
  constexpr int parts = 4;
  MPI_Request pair[2];
  MPI_Psend_init(sent.data(), parts, count / parts, layout.element, other, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &pair[0]);
  MPI_Precv_init(received.data(), parts, count / parts, layout.element, other, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                 &pair[1]);
  const auto partitioned = [&] {
    MPI_Startall(2, pair);
    for (int part = 0; part < parts; ++part) MPI_Pready(part, pair[0]);
    MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
  };
  clear();
  partitioned();
  check("partitioned", layout, received, elements / parts * parts, 0, other, 0);
  time_call("partitioned", layout, bytes, partitioned);
  MPI_Request_free(&pair[0]);
  MPI_Request_free(&pair[1]);

  // The window is ordinary memory, as of most programs. The target has the same type.
  MPI_Win window;
  MPI_Win_create(received.data(), static_cast<MPI_Aint>(8 * received.size()), 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                 &window);
  const auto put = [&] {
    MPI_Put(sent.data(), count, layout.element, other, 0, count, layout.element, window);
    MPI_Win_fence(0, window);
  };
  MPI_Win_fence(0, window);
  clear();
  MPI_Win_fence(0, window);
  put();
  check("put", layout, received, elements, 0, other, 0);
  time_call("put", layout, bytes, put);
  MPI_Win_free(&window);
  std::vector<double> exposed = sent;
  MPI_Win_create(exposed.data(), static_cast<MPI_Aint>(8 * exposed.size()), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  const auto get = [&] {
    MPI_Get(received.data(), count, layout.element, other, 0, count, layout.element, window);
    MPI_Win_fence(0, window);
  };
  MPI_Win_fence(0, window);
  clear();
  get();
  check("get", layout, received, elements, 0, other, 0);
  time_call("get", layout, bytes, get);
  MPI_Win_free(&window);

  std::vector<double> field = sent;
  const auto bcast = [&] { MPI_Bcast(field.data(), count, layout.element, 0, MPI_COMM_WORLD); };
  bcast();
  check("bcast", layout, field, elements, 0, 0, 0);
  time_call("bcast", layout, bytes, bcast);
  const auto gather = [&] {
    MPI_Gather(sent.data(), count, layout.element, received.data(), count, layout.element, 0, MPI_COMM_WORLD);
  };
  clear();
  gather();
  if (rank == 0) check("gather", layout, received, elements, doubles, 1, 0);
  time_call("gather", layout, bytes, gather);
  const auto allgather = [&] {
    MPI_Allgather(sent.data(), count, layout.element, received.data(), count, layout.element, MPI_COMM_WORLD);
  };
  clear();
  allgather();
  check("allgather", layout, received, elements, static_cast<std::size_t>(other) * doubles, other, 0);
  time_call("allgather", layout, bytes, allgather);
  const auto alltoall = [&] {
    MPI_Alltoall(sent.data(), count, layout.element, received.data(), count, layout.element, MPI_COMM_WORLD);
  };
  clear();
  alltoall();
  check("alltoall", layout, received, elements, static_cast<std::size_t>(other) * doubles, other,
        static_cast<std::size_t>(rank) * doubles);
  time_call("alltoall", layout, bytes, alltoall);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) {
    if (rank == 0) std::fprintf(stderr, "typed_calls needs 2 ranks\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  Layout layouts[] = {layout_of("vector8", 1, 2), layout_of("vector128", 16, 32), particle()};
  for (Layout& layout : layouts) {
    for (const std::size_t bytes : {std::size_t{4096}, std::size_t{65536}, std::size_t{1} << 20})
      measure(layout, bytes);
    MPI_Type_free(&layout.element);
  }
  MPI_Finalize();
}
