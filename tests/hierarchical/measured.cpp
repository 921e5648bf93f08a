// SPDX-License-Identifier: Apache-2.0
// Blocking collectives go through the hierarchy if the profile says that it is faster (measured_profile.cpp), and are
// left to the MPI library if it says that the library is: on all ranks alike, with the library's results and errors.
// TEST_EXPECT=library: all are left to the library; either: another profile may be in effect.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/hierarchical/calls.hpp"
#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

constexpr What measured[] = {What::allgather,
                             What::broadcast,
                             What::gather,
                             What::scatter,
                             What::alltoall,
                             What::reduce_scatter,
                             What::reduce_scatter_block,
                             What::allreduce,
                             What::reduce};
constexpr int KiB = 1024;

bool reduces(What what) { return what >= What::reduce_scatter; }
/// Whether each rank has a block of the vector.
bool has_blocks(What what) { return what != What::broadcast && what != What::allreduce && what != What::reduce; }

bool gathers_to_all(What what) { return what == What::allgather || what == What::allgatherv; }

enum class Went { to_library, through_hierarchy };
const char* name(Went went) { return went == Went::to_library ? "to the library" : "through the hierarchy"; }

bool profile_decides() {
  const char* const expect = std::getenv("TEST_EXPECT");
  return !expect || std::strcmp(expect, "measured") == 0;
}
/// The way of a call of a measured size and shape; no value: either.
std::optional<Went> way_of(What what) {
  if (expectation() == Expectation::library) return Went::to_library;
  if (!profile_decides()) return std::nullopt;
  return what == What::allgather ? Went::through_hierarchy : Went::to_library;
}
/// The way of other calls: predictions, which measured points correct.
std::optional<Went> predicted_way_of(What what) {
  if (profile_decides() && gathers_to_all(what)) return std::nullopt;
  return way_of(what);
}

struct Case {
  What what;
  int bytes = 64 * KiB;  ///< of the whole vector
  int root = 0;
  bool large = false, in_place = false;
  int derived = -1;  ///< the rank whose data are pairs with a gap
  MPI_Datatype type = MPI_INT;
  MPI_Op op = MPI_SUM;
  MPI_Comm comm = MPI_COMM_WORLD;
};

/// Two ints with gaps.
MPI_Datatype pairs() {
  static const MPI_Datatype made = [] {
    MPI_Datatype vector, pair;
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 16, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_free(&vector);
    return pair;
  }();
  return made;
}

/// Makes the call and the MPI library's own, and checks that all buffers are equal.
void check(const Case& given, std::optional<Went> expected) {
  int rank, ranks;
  MPI_Comm_rank(given.comm, &rank);
  MPI_Comm_size(given.comm, &ranks);
  const bool derives = given.derived == rank, at_root = !rooted(given.what) || rank == given.root;
  const int whole = given.bytes / 4, block = has_blocks(given.what) ? whole / ranks : whole;
  std::vector<int> out(static_cast<std::size_t>(2 * whole)), in(out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = static_cast<int>(i * 7919) + rank * 1000003;
    in[i] = -out[i];
  }
  // Values that are valid floats, too.
  if (given.type == MPI_FLOAT)
    for (auto* buffer : {&out, &in})
      for (int& each : *buffer) each = each % 1000 + 0x3f800000;
  const std::vector<int> before = in, sent = out;
  const auto call = [&](bool library, std::vector<int>& result) {
    Arguments a;
    a.out = out.data();
    a.in = result.data();
    a.out_type = a.in_type = derives ? pairs() : given.type;
    a.out_count = a.in_count = derives ? block / 2 : block;
    a.op = given.op;
    a.root = given.root;
    a.comm = given.comm;
    std::vector<int> at;
    for (int r = 0; r < ranks; ++r) at.push_back(r * block);
    a.give_counts(std::vector<int>(at.size(), block), at);
    a.give_out_counts(a.counts, at);
    if (given.in_place && at_root && given.what != What::broadcast) {
      if (scatters(given.what))
        a.in = MPI_IN_PLACE;
      else
        a.out = MPI_IN_PLACE;
      if (library && given.what == What::reduce) a.out = before.data();  // see below
    }
    CHECK_EQUAL(MPI_SUCCESS, complete(given.what, {Wait::in_call, given.large, library}, a));
  };
  const int calls = calls_seen_by_library();
  call(false, in);
  const Went went = calls_seen_by_library() == calls ? Went::through_hierarchy : Went::to_library;
  const std::string text = std::string(bestride::test::name(given.what)) + (given.large ? "_c, " : ", ") +
                           std::to_string(given.bytes) + " bytes, root " + std::to_string(given.root) +
                           (given.in_place ? ", in place" : "") +
                           (given.derived < 0 ? "" : ", a derived type on rank " + std::to_string(given.derived));
  if (went != expected.value_or(went))
    fail_check(__FILE__, __LINE__, text + ": went " + name(went) + ", not " + name(*expected));
  if (out != sent && given.what != What::broadcast) fail_check(__FILE__, __LINE__, text + ": the send buffer differs");
  std::vector<int> theirs = before;
  call(true, theirs);
  // The buffer after the result of an in-place reduce-scatter is undefined.
  if (reduces(given.what) && given.in_place && has_blocks(given.what)) {
    in.resize(static_cast<std::size_t>(block));
    theirs.resize(in.size());
  }
  if (in != theirs) fail_check(__FILE__, __LINE__, text + ": the receive buffer differs from the library's");
}

/// The number of calls of the error handler.
int errors_handled = 0;
void handle(MPI_Comm*, int*, ...) { ++errors_handled; }

}  // namespace

MPI_CASE(every_call_and_its_bytes) {
  for (const What what : measured)
    for (const int bytes : {4 * KiB, 200 * KiB, 1024 * KiB})
      for (int root = 0; root < (rooted(what) && bytes < 1024 * KiB ? world_size() : 1); ++root)
        for (const bool in_place : {false, true}) {
          if (in_place && (what == What::broadcast || what == What::alltoall)) continue;
          // MPICH 4.0.2 crashes in some long blocking in-place reductions.
          if (in_place && what == What::reduce) continue;
          check({.what = what, .bytes = bytes, .root = root, .large = bytes == 4 * KiB, .in_place = in_place},
                way_of(what));
        }
}

MPI_CASE(one_rank_has_a_derived_type) {
  for (const What what : measured)
    for (int derived = 0; derived < world_size() && !reduces(what); ++derived)
      for (const int root : {0, world_size() - 1})
        check({.what = what, .root = root, .derived = derived}, way_of(what));
}

MPI_CASE(operations) {
  for (const What what : measured) {
    if (!reduces(what)) continue;
    for (const MPI_Op op : {MPI_MAX, MPI_BXOR, MPI_LAND}) check({.what = what, .op = op}, way_of(what));
    for (const MPI_Op op : {MPI_MIN, MPI_SUM, MPI_PROD})
      check({.what = what, .type = MPI_FLOAT, .op = op}, way_of(what));
    MPI_Op own;
    MPI_Op_create(
        [](void* from, void* to, int* count, MPI_Datatype*) {
          std::transform(static_cast<int*>(from), static_cast<int*>(from) + *count, static_cast<int*>(to),
                         static_cast<int*>(to), std::bit_or());
        },
        1, &own);
    check({.what = what, .op = own}, way_of(what));
    MPI_Op_free(&own);
  }
}

MPI_CASE(sizes_that_were_not_measured) {
  for (const What what : {What::allgatherv, What::gatherv, What::scatterv, What::alltoallv})
    check({.what = what}, predicted_way_of(what));
  for (const What what : measured) {
    check({.what = what, .bytes = KiB}, predicted_way_of(what));
    check({.what = what, .bytes = 4096 * KiB}, predicted_way_of(what));
  }
  // Communicators of other shapes: the even and the odd ranks, and all ranks but the last.
  const int rank = world_rank(), ranks = world_size();
  for (const bool whole : {true, false}) {
    if (ranks == 2 && whole) continue;
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, whole || rank < ranks - 1 ? 0 : MPI_UNDEFINED, whole ? rank % 2 : 0, &comm);
    if (comm == MPI_COMM_NULL) continue;
    for (const What what : measured) check({.what = what, .comm = comm}, predicted_way_of(what));
    MPI_Comm_free(&comm);
  }
}

MPI_CASE(other_communicators_of_the_shape) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  for (const What what : measured) check({.what = what, .comm = comm}, way_of(what));
  MPI_Comm_free(&comm);
}

MPI_CASE(nonblocking_and_persistent_calls) {
  std::vector<int> out(16 * KiB, 1), in(out.size());
  for (const Wait wait : {Wait::nonblocking, Wait::persistent}) {
    Arguments a;
    a.out = out.data();
    a.in = in.data();
    a.in_count = static_cast<MPI_Count>(out.size());
    a.in_type = MPI_INT;
    a.op = MPI_SUM;
    a.comm = MPI_COMM_WORLD;
    const int calls = calls_seen_by_library();
    CHECK_EQUAL(MPI_SUCCESS, complete(What::allreduce, {wait, false, false}, a));
    if (way_of(What::allreduce)) CHECK_EQUAL(calls + 1, calls_seen_by_library());
  }
}

/// Hierarchical collectives are pending on the same communicator and on another; other ranks complete them before they
/// make the call.
MPI_CASE(while_others_are_pending) {
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  const int ranks = world_size(), rank = world_rank(), count = 16 * KiB;
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<int> given(count, rank + turn), all[2];
    MPI_Request requests[2];
    const int before = calls_seen_by_library();
    for (int i = 0; i < 2; ++i) {
      all[i].resize(static_cast<std::size_t>(count * ranks));
      MPI_Iallgather(given.data(), count, MPI_INT, all[i].data(), count, MPI_INT, i ? other : MPI_COMM_WORLD,
                     &requests[i]);
    }
    if (way_of(What::allgather) == Went::through_hierarchy) CHECK_EQUAL(before, calls_seen_by_library());
    if (rank % 2) MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    check({.what = What::allreduce}, way_of(What::allreduce));
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (const auto& gathered : all)
      for (int r = 0; r < ranks; ++r) CHECK_EQUAL(r + turn, gathered[static_cast<std::size_t>(r * count + turn)]);
  }
  MPI_Comm_free(&other);
}

MPI_CASE(errors_are_the_library_s) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
  std::vector<int> out(64 * KiB, 1), in(out.size(), 2);
  MPI_Datatype uncommitted;
  MPI_Type_contiguous(2, MPI_INT, &uncommitted);
  const struct {
    const char* text;
    bool (*concerns)(What);
    std::function<void(Arguments&)> spoil;
  } errors[] = {
      // MPICH 4.0.2 checks the counts of the other reductions too late and crashes.
      {"a negative count", [](What what) { return what <= What::reduce_scatter; },
       [](Arguments& a) {
         a.out_count = a.in_count = -1;
         a.give_counts(std::vector<int>(a.counts.size(), -1));
       }},
      {"no type", [](What) { return true; }, [](Arguments& a) { a.out_type = a.in_type = MPI_DATATYPE_NULL; }},
      {"an uncommitted type", [](What what) { return !reduces(what); },
       [&](Arguments& a) { a.out_type = a.in_type = uncommitted; }},
      {"a bad root", rooted, [](Arguments& a) { a.root = 4711; }},
      {"no buffer", [](What) { return true; }, [](Arguments& a) { a.out = a.in = nullptr; }},
      {"one buffer for both", [](What what) { return what == What::allreduce || what == What::reduce_scatter_block; },
       [](Arguments& a) { a.out = a.in; }},
      {"no operation", reduces, [](Arguments& a) { a.op = MPI_OP_NULL; }},
      {"an operation of another type", reduces, [](Arguments& a) { a.op = MPI_MAXLOC; }},
  };
  for (const auto& error : errors)
    for (const What what : measured) {
      if (!error.concerns(what)) continue;
      Arguments a;
      a.out = out.data();
      a.in = in.data();
      a.out_count = a.in_count = 4 * KiB;
      a.out_type = a.in_type = MPI_INT;
      a.op = MPI_SUM;
      a.comm = MPI_COMM_WORLD;
      a.give_counts(std::vector<int>(static_cast<std::size_t>(world_size()), 4 * KiB));
      error.spoil(a);
      int classes[2], handled[2];
      for (const bool library : {false, true}) {
        errors_handled = 0;
        classes[library] = error_class(complete(what, {Wait::in_call, false, library}, a));
        handled[library] = errors_handled;
      }
      const std::string text = std::string(bestride::test::name(what)) + ", " + error.text;
      if (classes[1] == MPI_SUCCESS) fail_check(__FILE__, __LINE__, text + ": the library finds no error");
      if (classes[0] != classes[1])
        fail_check(__FILE__, __LINE__,
                   text + ": class " + std::to_string(classes[0]) + ", the library's " + std::to_string(classes[1]));
      if (handled[0] != handled[1])
        fail_check(
            __FILE__, __LINE__,
            text + ": handled " + std::to_string(handled[0]) + " times, the library's " + std::to_string(handled[1]));
      check({.what = what}, way_of(what));
    }
  MPI_Type_free(&uncommitted);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Errhandler_free(&handler);
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
