// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks on one node, by their MPI_ names, and a local copy of what a rank receives.
//
//   one_node [--calls N] [--bytes N,N,...] [--only NAME,NAME,...] [--form blocking|nonblocking|persistent] [--distance
//   1]
// --bytes: what each rank sends, or what the root sends; for a reduction, the length of the vector.
// --distance 1: the first and the last line are "round_trip SECONDS" (round_trip.hpp).
// --form: a nonblocking or persistent call is started and waited for at once. Neighbor collectives are blocking.
//
// Prints one line for each collective and size: name, bytes, median and least seconds of a call (the slowest rank's),
// median seconds of the local copy. Every rank writes its send buffer before each call, like a program that computes
// between calls, and all ranks begin at the same time (start_line.hpp). The result of every call is checked; a wrong
// one ends the program with 1.
#include <mpi.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/median.hpp"
#include "bench/options.hpp"
#include "round_trip.hpp"
#include "start_line.hpp"

namespace {

int rank = 0, ranks = 1;
enum class Form { blocking, nonblocking, persistent } form = Form::blocking;
MPI_Request persistent = MPI_REQUEST_NULL;  ///< of the case that is measured

/// Carries out a collective in the form that is measured.
template <class Blocking, class Nonblocking, class Init, class... Arguments>
void carry_out(Blocking blocking, Nonblocking nonblocking, Init init, Arguments... arguments) {
  if (form == Form::blocking) {
    blocking(arguments...);
  } else if (form == Form::nonblocking) {
    MPI_Request request;
    nonblocking(arguments..., &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    if (persistent == MPI_REQUEST_NULL) init(arguments..., MPI_INFO_NULL, &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  }
}
#define BESTRIDE_FORMS(Name, Iname) MPI_##Name, MPI_##Iname, MPI_##Name##_init

constexpr command_line::Named<Form> forms[] = {
    {Form::blocking, "blocking"}, {Form::nonblocking, "nonblocking"}, {Form::persistent, "persistent"}};

/// The number at place `i` of what `from` sends in a call.
int number(int call, int from, long i) { return call * 1000003 + from * 7919 + static_cast<int>(i); }

/// The same as a float without rounding errors in sums, in the bytes of an int.
int small_float(int number) { return std::bit_cast<int>(static_cast<float>(number & 0xffff)); }

/// One collective at one size. Buffers hold ints, or floats of the same size.
struct Case {
  std::string name;
  long sent = 0, received = 0;  ///< ints
  std::function<void(const int*, int*)> call;
  std::function<int(int call, long i)> expected;  ///< at place i of the receive buffer
  bool receives = true;                           ///< this rank has a result
  bool floats = false;                            ///< the numbers sent are floats; `expected` returns their bits
};

/// Redistributes a 3-D array of 16-byte elements, divided along its first axis, so that it is divided along its second,
/// as in a 3-D FFT (mpi4py-fft): MPI_Alltoallw with subarray types for each rank on both sides.
void add_redistribution(long bytes, std::vector<Case>* cases) {
  constexpr long depth = 16, ints = 4;
  long side = ranks;
  while (4 * side * side / ranks * depth * 16 <= bytes) side *= 2;
  if (side * side / ranks * depth * 16 * 4 < bytes) return;
  const long rows = side / ranks;
  cases->push_back(
      {"redistribute", rows * side * depth * ints, rows * side * depth * ints,
       [side, rows](const int* in, int* out) {
         static std::vector<MPI_Datatype> send, receive;
         static long made_for = 0;
         static std::vector<int> counts, places;
         if (made_for != side) {
           for (std::vector<MPI_Datatype>* types : {&send, &receive}) {
             for (MPI_Datatype& type : *types) MPI_Type_free(&type);
             types->assign(static_cast<std::size_t>(ranks), MPI_DATATYPE_NULL);
           }
           for (int to = 0; to < ranks; ++to) {
             const int r = static_cast<int>(rows), s = static_cast<int>(side), d = static_cast<int>(depth);
             const int whole_out[] = {r, s, d}, whole_in[] = {s, r, d}, piece[] = {r, r, d};
             const int from_there[] = {0, to * r, 0}, to_there[] = {to * r, 0, 0};
             const auto at = static_cast<std::size_t>(to);
             MPI_Type_create_subarray(3, whole_out, piece, from_there, MPI_ORDER_C, MPI_C_DOUBLE_COMPLEX, &send[at]);
             MPI_Type_create_subarray(3, whole_in, piece, to_there, MPI_ORDER_C, MPI_C_DOUBLE_COMPLEX, &receive[at]);
             MPI_Type_commit(&send[at]);
             MPI_Type_commit(&receive[at]);
           }
           counts.assign(static_cast<std::size_t>(ranks), 1);
           places.assign(static_cast<std::size_t>(ranks), 0);
           made_for = side;
         }
         carry_out(BESTRIDE_FORMS(Alltoallw, Ialltoallw), in, counts.data(), places.data(), send.data(), out,
                   counts.data(), places.data(), receive.data(), MPI_COMM_WORLD);
       },
       [side, rows](int call, long i) {
         const long first = i / (rows * depth * ints), second = i / (depth * ints) % rows, rest = i % (depth * ints);
         const int from = static_cast<int>(first / rows);
         return number(call, from, ((first % rows) * side + rank * rows + second) * depth * ints + rest);
       }});
}

/// A ring of ranks. Its neighbors are distinct: one of two ranks has one neighbor.
struct Ring {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> neighbors;  ///< the rank before this one, and the one behind it

  Ring() : neighbors{(rank + ranks - 1) % ranks} {
    if (ranks > 2) neighbors.push_back((rank + 1) % ranks);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree(), neighbors.data(), MPI_UNWEIGHTED, degree(),
                                   neighbors.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  }
  int degree() const { return static_cast<int>(neighbors.size()); }
};

/// Neighbor collectives on a ring: equal contiguous blocks, and the first and last columns of an array of eight.
void add_neighbor_collectives(long bytes, std::vector<Case>* cases) {
  static const Ring ring;
  constexpr long columns = 8, ints = 2;  // of 8-byte elements
  const long degree = ring.degree(), each = std::max(bytes / 4 / degree, 1L), rows = each / ints;
  // The k-th neighbor's block for this rank is its last but k-th one.
  cases->push_back({"neighbor_alltoall", each * degree, each * degree,
                    [each](const int* in, int* out) {
                      const int part = static_cast<int>(each);
                      carry_out(BESTRIDE_FORMS(Neighbor_alltoall, Ineighbor_alltoall), in, part, MPI_INT, out, part,
                                MPI_INT, ring.comm);
                    },
                    [each, degree](int call, long i) {
                      const long k = i / each;
                      return number(call, ring.neighbors[static_cast<std::size_t>(k)],
                                    (degree - 1 - k) * each + i % each);
                    }});
  if (rows == 0) return;
  cases->push_back({"neighbor_columns", rows * columns * ints, rows * degree * ints,
                    [rows](const int* in, int* out) {
                      static MPI_Datatype column = MPI_DATATYPE_NULL;
                      static long made_for = 0;
                      if (made_for != rows) {
                        if (made_for != 0) MPI_Type_free(&column);
                        MPI_Type_vector(static_cast<int>(rows), 1, columns, MPI_DOUBLE, &column);
                        MPI_Type_commit(&column);
                        made_for = rows;
                      }
                      // Nonblocking and persistent calls use these until they have ended.
                      static const int one[] = {1, 1};
                      static const MPI_Aint from[] = {0, (columns - 1) * 8};
                      static const MPI_Datatype received[] = {MPI_DOUBLE, MPI_DOUBLE};
                      static int counts[2];
                      static MPI_Aint to[2];
                      static MPI_Datatype sent[2];
                      counts[0] = counts[1] = static_cast<int>(rows);
                      to[1] = rows * 8;
                      sent[0] = sent[1] = column;
                      carry_out(BESTRIDE_FORMS(Neighbor_alltoallw, Ineighbor_alltoallw), in, one, from, sent, out,
                                counts, to, received, ring.comm);
                    },
                    [rows, degree](int call, long i) {
                      const long k = i / (rows * ints), row = i / ints % rows, part = i % ints;
                      const long column = degree - 1 - k == 0 ? 0 : columns - 1;
                      return number(call, ring.neighbors[static_cast<std::size_t>(k)],
                                    (row * columns + column) * ints + part);
                    }});
}

std::vector<Case> cases_of(long bytes) {
  const long count = std::max(bytes / 4, 1L), each = std::max(count / ranks, 1L);
  const int n = static_cast<int>(count), part = static_cast<int>(each);
  const auto sum = [](int call, long i) {
    unsigned all = 0;
    for (int from = 0; from < ranks; ++from) all += static_cast<unsigned>(number(call, from, i));
    return static_cast<int>(all);
  };
  std::vector<Case> cases;
  cases.push_back(
      {"alltoall", each * ranks, each * ranks,
       [part](const int* in, int* out) {
         carry_out(BESTRIDE_FORMS(Alltoall, Ialltoall), in, part, MPI_INT, out, part, MPI_INT, MPI_COMM_WORLD);
       },
       [each](int call, long i) { return number(call, static_cast<int>(i / each), rank * each + i % each); }});
  cases.push_back({"alltoallv", each * ranks, each * ranks,
                   [part](const int* in, int* out) {
                     static std::vector<int> counts, at;
                     counts.assign(static_cast<std::size_t>(ranks), part);
                     at.clear();
                     for (int to = 0; to < ranks; ++to) at.push_back(to * part);
                     carry_out(BESTRIDE_FORMS(Alltoallv, Ialltoallv), in, counts.data(), at.data(), MPI_INT, out,
                               counts.data(), at.data(), MPI_INT, MPI_COMM_WORLD);
                   },
                   cases.back().expected});
  cases.push_back({"allgather", count, count * ranks,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Allgather, Iallgather), in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
                   },
                   [count](int call, long i) { return number(call, static_cast<int>(i / count), i % count); }});
  cases.push_back({"bcast", count, count,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Bcast, Ibcast), rank == 0 ? const_cast<int*>(in) : out, n, MPI_INT, 0,
                               MPI_COMM_WORLD);
                   },
                   [](int call, long i) { return number(call, 0, i); }, rank != 0});
  cases.push_back({"gather", count, count * ranks,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Gather, Igather), in, n, MPI_INT, out, n, MPI_INT, 0, MPI_COMM_WORLD);
                   },
                   [count](int call, long i) { return number(call, static_cast<int>(i / count), i % count); },
                   rank == 0});
  cases.push_back({"scatter", each * ranks, each,
                   [part](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Scatter, Iscatter), in, part, MPI_INT, out, part, MPI_INT, 0,
                               MPI_COMM_WORLD);
                   },
                   [each](int call, long i) { return number(call, 0, rank * each + i); }});
  cases.push_back({"allreduce", count, count,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Allreduce, Iallreduce), in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
                   },
                   sum});
  cases.push_back({"reduce", count, count,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Reduce, Ireduce), in, out, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
                   },
                   sum, rank == 0});
  const auto sum_of_floats = [](int call, long i) {
    float all = 0;
    for (int from = 0; from < ranks; ++from) all += std::bit_cast<float>(small_float(number(call, from, i)));
    return std::bit_cast<int>(all);
  };
  cases.push_back({"allreduce_float", count, count,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Allreduce, Iallreduce), in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                   },
                   sum_of_floats, true, true});
  cases.push_back({"reduce_float", count, count,
                   [n](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Reduce, Ireduce), in, out, n, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
                   },
                   sum_of_floats, rank == 0, true});
  cases.push_back({"reduce_scatter_block", each * ranks, each,
                   [part](const int* in, int* out) {
                     carry_out(BESTRIDE_FORMS(Reduce_scatter_block, Ireduce_scatter_block), in, out, part, MPI_INT,
                               MPI_SUM, MPI_COMM_WORLD);
                   },
                   [sum, each](int call, long i) { return sum(call, rank * each + i); }});
  // A square matrix of 16-byte elements, divided by rows, is transposed, as in a 2-D FFT. Element (r, c) of this rank's
  // rows goes to place (c, r).
  long side = ranks;
  while (4 * side * side / ranks * 16 <= bytes) side *= 2;
  if (side * side / ranks * 16 * 4 >= bytes) {
    const int rows = static_cast<int>(side / ranks), all = static_cast<int>(side);
    cases.push_back({"transpose", side * rows * 4, side * rows * 4,
                     [rows, all](const int* in, int* out) {
                       static MPI_Datatype send = MPI_DATATYPE_NULL, receive = MPI_DATATYPE_NULL;
                       static int made_for = 0;
                       if (made_for != all) {
                         if (made_for != 0) MPI_Type_free(&send), MPI_Type_free(&receive);
                         MPI_Datatype element, block, column, columns;
                         MPI_Type_contiguous(2, MPI_DOUBLE, &element);
                         MPI_Type_vector(rows, rows, all, element, &block);
                         MPI_Type_create_resized(block, 0, rows * 16, &send);
                         MPI_Type_free(&block);
                         MPI_Type_vector(rows, 1, all, element, &block);
                         MPI_Type_create_resized(block, 0, 16, &column);
                         MPI_Type_contiguous(rows, column, &columns);
                         MPI_Type_create_resized(columns, 0, rows * 16, &receive);
                         MPI_Type_commit(&send);
                         MPI_Type_commit(&receive);
                         for (MPI_Datatype* type : {&element, &block, &column, &columns}) MPI_Type_free(type);
                         made_for = all;
                       }
                       carry_out(BESTRIDE_FORMS(Alltoall, Ialltoall), in, 1, send, out, 1, receive, MPI_COMM_WORLD);
                     },
                     [side, rows](int call, long i) {
                       const long row = i / (4 * side), column = i / 4 % side, part = i % 4;
                       const int from = static_cast<int>(column / rows);
                       return number(call, from, ((column % rows) * side + rank * rows + row) * 4 + part);
                     }});
  }
  add_redistribution(bytes, &cases);
  add_neighbor_collectives(bytes, &cases);
  return cases;
}

/// Returns false if a result is wrong.
bool measure(const Case& each, long bytes, int calls, StartLine& line) {
  std::vector<int> in(static_cast<std::size_t>(each.sent)), out(static_cast<std::size_t>(each.received)), copy = out;
  std::vector<double> times, copies;
  const int warm_up = 20;
  bool right = true;
  for (int call = -warm_up; call < calls; ++call) {
    for (long i = 0; i < each.sent; ++i)
      in[static_cast<std::size_t>(i)] = each.floats ? small_float(number(call, rank, i)) : number(call, rank, i);
    line.wait();
    const double begin = MPI_Wtime();
    each.call(in.data(), out.data());
    double seconds = MPI_Wtime() - begin, slowest = 0;
    for (long i = 0; each.receives && i < each.received; ++i)
      right = right && out[static_cast<std::size_t>(i)] == each.expected(call, i);
    const double copying = MPI_Wtime();
    std::memcpy(copy.data(), out.data(), out.size() * sizeof(int));
    asm volatile("" : : "r"(copy.data()) : "memory");
    const double copied = MPI_Wtime() - copying;
    PMPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (call < 0) continue;
    times.push_back(slowest);
    copies.push_back(copied);
  }
  if (persistent != MPI_REQUEST_NULL) MPI_Request_free(&persistent);
  if (rank == 0)
    std::printf("%s %ld %.9f %.9f %.9f\n", each.name.c_str(), bytes, bestride::median_of(times),
                *std::min_element(times.begin(), times.end()), bestride::median_of(copies));
  if (!right) std::fprintf(stderr, "rank %d: %s of %ld bytes is wrong\n", rank, each.name.c_str(), bytes);
  return right;
}

void print_round_trip() {
  const double seconds = round_trip(MPI_COMM_WORLD);
  if (rank == 0) std::printf("round_trip %.9f\n", seconds);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<std::size_t> sizes{8, 64, 512, 4096, 16384, 65536, 262144, 1048576};
  int calls = 100, distance = 0;
  bench::Only only;
  bench::apply_or_exit(argc, argv,
                       {{"--calls", command_line::whole(calls, 1, 1 << 30)},
                        {"--bytes", command_line::sizes(sizes)},
                        {"--only", only.setter()},
                        {"--form", command_line::one_of(form, forms)},
                        {"--distance", command_line::whole(distance, 0, 1)}});
  int wrong = 0, any = 0;
  if (distance) print_round_trip();
  StartLine line(MPI_COMM_WORLD);
  for (const std::size_t size : sizes)
    for (const Case& each : cases_of(static_cast<long>(size)))
      if (only.wants(each.name))
        wrong |= !measure(each, static_cast<long>(size), size >= 1 << 20 ? std::max(calls / 5, 5) : calls, line);
  if (distance) print_round_trip();
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
