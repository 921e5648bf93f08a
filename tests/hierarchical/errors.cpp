// SPDX-License-Identifier: Apache-2.0
// Invalid arguments on all ranks give the MPI library's error class, in every form, and the next collective works.
// Arguments that are valid but look invalid to one rank work.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "datatype/named.hpp"
#include "tests/hierarchical/calls.hpp"
#include "tests/support/harness.hpp"
#include "tests/support/mpi_types.hpp"

using namespace bestride::test;

namespace {

std::vector<long> out(64, 1), in(64, 2);

/// Valid arguments for every collective.
Arguments sound() {
  Arguments a;
  a.out = out.data();
  a.in = in.data();
  a.out_count = a.in_count = 4;
  a.out_type = a.in_type = MPI_LONG;
  a.op = MPI_SUM;
  a.comm = MPI_COMM_WORLD;
  std::vector<int> at;
  for (int rank = 0; rank < world_size(); ++rank) at.push_back(4 * rank);
  a.give_counts(std::vector<int>(at.size(), 4), at);
  a.give_out_counts(a.counts, at);
  return a;
}

/// With a type for each rank, and displacements in bytes.
Arguments with_types(Arguments a) {
  const auto in_bytes = [](std::vector<int> places) {
    for (int& place : places) place *= static_cast<int>(sizeof(long));
    return places;
  };
  a.give_counts(a.counts, in_bytes(a.at));
  a.give_out_counts(a.out_counts, in_bytes(a.out_at));
  a.out_types.assign(a.out_counts.size(), a.out_type);
  a.in_types.assign(a.counts.size(), a.in_type);
  return a;
}

int class_of(What what, Form form, const Arguments& a) {
  const int error = complete(what, form, what == What::alltoallw ? with_types(a) : a);
  return error == MPI_SUCCESS ? MPI_SUCCESS : error_class(error);
}

bool reduces(What what) { return what >= What::reduce_scatter; }

/// `spoil` makes the arguments invalid. The expected error class is that of the MPI library's call in the same form.
void compare(const std::string& text, const std::function<bool(What)>& concerns,
             const std::function<void(Arguments&)>& spoil) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  const auto each = [&](What what) {
    if (!concerns(what)) return;
    for (const Wait wait : every_wait)
      for (const bool large : {false, true}) {
        Arguments a = sound();
        spoil(a);
        Form form{wait, large, true};
        const int expected = class_of(what, form, a);
        form.library = false;
        const int got = class_of(what, form, a);
        if (got != expected)
          fail_check(__FILE__, __LINE__,
                     std::string(name(what)) + " " + name(form) + ", " + text + ": class " + std::to_string(got) +
                         ", the library's " + std::to_string(expected));
        if (expected == MPI_SUCCESS)
          fail_check(__FILE__, __LINE__, std::string(name(what)) + ", " + text + ": the library finds no error");
        CHECK_EQUAL(MPI_SUCCESS, class_of(what, {wait, large, false}, sound()));
      }
  };
  for (const What what : moving) each(what);
  for (const What what : reducing) each(what);
}

bool always(What) { return true; }

/// Rank 0 sends from the start of its receive buffer, which looks like aliased buffers. This is valid: the count is
/// zero, or the block is already at its place, though with another type.
MPI_CASE(arguments_that_look_invalid_to_one_rank) {
  const int ranks = world_size(), rank = world_rank();
  std::vector<int> counts(static_cast<std::size_t>(ranks), 4), at;
  counts[0] = 0;
  for (int r = 0; r < ranks; ++r) at.push_back(4 * r);
  std::vector<long> mine(4, rank), all(static_cast<std::size_t>(4 * ranks), -1);
  const void* given = rank == 0 ? all.data() : mine.data();
  // On one node the first two calls go to the library, in which some of these fail.
  for (int time = 0; time < 2; ++time) MPI_Allgather(mine.data(), 1, MPI_LONG, all.data(), 1, MPI_LONG, MPI_COMM_WORLD);
  all.assign(all.size(), -1);
  CHECK_EQUAL(MPI_SUCCESS, MPI_Allgatherv(given, counts[static_cast<std::size_t>(rank)], MPI_LONG, all.data(),
                                          counts.data(), at.data(), MPI_LONG, MPI_COMM_WORLD));
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < 4; ++i) CHECK_EQUAL(r == 0 ? -1L : r, all[static_cast<std::size_t>(4 * r + i)]);

  if (rank == 0) std::fill_n(all.begin(), 4, 0);
  given = rank == 0 ? all.data() : mine.data();
  CHECK_EQUAL(MPI_SUCCESS, MPI_Allgather(given, 32, MPI_BYTE, all.data(), 4, MPI_LONG, MPI_COMM_WORLD));
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < 4; ++i) CHECK_EQUAL(static_cast<long>(r), all[static_cast<std::size_t>(4 * r + i)]);
}

}  // namespace

MPI_CASE(negative_counts) {
  // MPICH 4.0.2 checks the counts of the other reductions too late and crashes.
  compare(
      "a negative count", [](What what) { return what <= What::reduce_scatter; },
      [](Arguments& a) {
        a.out_count = a.in_count = -1;
        a.give_counts(std::vector<int>(a.counts.size(), -1), a.at);
        a.give_out_counts(a.counts, a.at);
      });
}

MPI_CASE(null_type) {
  compare("MPI_DATATYPE_NULL", always, [](Arguments& a) { a.out_type = a.in_type = MPI_DATATYPE_NULL; });
}

MPI_CASE(uncommitted_type) {
  MPI_Datatype type;
  MPI_Type_vector(2, 1, 2, MPI_LONG, &type);
  compare(
      "an uncommitted type", [](What what) { return !reduces(what); },
      [&](Arguments& a) { a.out_type = a.in_type = type; });
  MPI_Type_free(&type);
}

MPI_CASE(invalid_root) {
  for (const int root : {-7, world_size()}) compare("a bad root", rooted, [root](Arguments& a) { a.root = root; });
}

MPI_CASE(null_communicator) {
  compare("MPI_COMM_NULL", always, [](Arguments& a) { a.comm = MPI_COMM_NULL; });
}

MPI_CASE(null_operation) {
  compare("MPI_OP_NULL", reduces, [](Arguments& a) { a.op = MPI_OP_NULL; });
}

MPI_CASE(operations_invalid_for_the_type) {
  const struct {
    const char* text;
    MPI_Op op;
    MPI_Datatype type;
  } pairs[] = {{"bits of doubles", MPI_BAND, MPI_DOUBLE}, {"where the greatest int is", MPI_MAXLOC, MPI_INT}};
  for (const auto& pair : pairs)
    compare(pair.text, reduces, [&](Arguments& a) {
      a.op = pair.op;
      a.out_type = a.in_type = pair.type;
    });
}

MPI_CASE(every_operation_with_every_type) {
  const ReturnErrors returned(MPI_COMM_WORLD);
  // MPICH 4.0.2 aborts in logical operations on types that are not integers.
  const auto logical = [](MPI_Op op) { return op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR; };
  const MPI_Op operations[] = {MPI_MAX, MPI_MIN,  MPI_SUM,  MPI_PROD,   MPI_LAND,   MPI_BAND,    MPI_LOR,
                               MPI_BOR, MPI_LXOR, MPI_BXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  for (const bestride::NamedType& type : bestride::named_types())
    for (const MPI_Op& op : operations) {
      if (logical(op) && !type.integer) continue;
      Arguments a = sound();
      std::vector<std::byte> zeros(256), results(256);
      a.out = zeros.data();
      a.in = results.data();
      a.out_type = a.in_type = predefined(type.name);
      a.op = op;
      for (const MPI_Count count : {a.out_count, MPI_Count{0}})
        for (const What what : {What::allreduce, What::reduce}) {
          a.out_count = a.in_count = count;
          const int expected = class_of(what, {Wait::in_call, false, true}, a),
                    got = class_of(what, {Wait::in_call, false, false}, a);
          if (got != expected)
            fail_check(__FILE__, __LINE__,
                       std::string(type.name) + ", operation " + std::to_string(&op - operations) + ", count " +
                           std::to_string(count) + ": class " + std::to_string(got) + ", the library's " +
                           std::to_string(expected));
        }
    }
}

MPI_CASE(aliased_buffers) {
  // Only collectives in which all ranks detect the aliased buffers.
  compare(
      "the same buffer", [](What what) { return what == What::allreduce || what == What::reduce_scatter_block; },
      [](Arguments& a) { a.out = a.in; });
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
