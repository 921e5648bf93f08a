// SPDX-License-Identifier: Apache-2.0
// Every intercepted collective, in every form, compared with the MPI library's own: the same call through MPI_ and
// PMPI_, and all bytes of the receive buffers, including gaps and margins. BESTRIDE_STRATEGY=respell respells every
// type that can be respelled.
#include <algorithm>
#include <memory>
#include <string>

#include "tests/interpose/collective_calls.hpp"
#include "tests/support/typed_data.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

using namespace bestride::test;

namespace {

/// Every type has 8-byte elements, so that the two sides may use different types. Among them: a last stride that is
/// cut, a gap before the first block, two and three loops, a lower bound below zero, a contiguous type, an irregular
/// list, and a message of many fragments.
constexpr const char* types[] = {"resized(0,960,vector(60,1,2,double))",
                                 "vector(60,1,2,double)",
                                 "subarray([12,30],[12,5],[0,4],c,double)",
                                 "resized(0,1024,hvector(8,1,128,vector(6,1,2,double)))",
                                 "resized(-16,960,vector(60,1,2,double))",
                                 "subarray([9,8,12],[3,8,10],[2,0,1],c,double)",
                                 "contiguous(60,double)",
                                 "contiguous(60,resized(0,24,double))",
                                 "indexed([3,1,4,1],[0,7,11,40],double)",
                                 "resized(0,48000,vector(3000,1,2,double))"};
constexpr const char* structs = "contiguous(20,resized(0,24,struct([1,1],[0,8],[int,double])))";

/// With more ranks than cores, each collective takes a time slice of the scheduler, so only some types and forms are
/// tested.
std::vector<const char*> chosen_types() {
  if (world_size() <= 2) return {std::begin(types), std::end(types)};
  return {types[0], types[2], types[6], types[9]};
}
std::vector<Form> chosen_forms() {
  if (world_size() <= 2) return {std::begin(intercepted_forms), std::end(intercepted_forms)};
  return {Form::blocking, Form::nonblocking_c};
}

/// The bytes that a direction's buffer must contain, relative to its origin.
struct Span {
  std::int64_t low = 0, high = 0;
  void include(const Facts& facts, std::int64_t at, std::int64_t count) {
    const std::int64_t last = at + (count > 0 ? count - 1 : 0) * facts.extent;
    low = std::min({low, at + facts.low, last + facts.low});
    high = std::max({high, at + facts.high, last + facts.high});
  }
};

/// A committed type and its facts.
struct Type {
  explicit Type(std::string_view text)
      : facts(*facts_of(type_from(text))), handle(std::make_unique<CommittedType>(text)) {}
  Facts facts;
  std::unique_ptr<CommittedType> handle;
  int doubles() const { return static_cast<int>(facts.size / 8); }
};

/// The lengths of the blocks of a v-form. They depend only on (from, to), so that both sides agree.
enum class Lengths { single, equal, some_empty, varying };
int length(Lengths lengths, int from, int to) {
  if (lengths == Lengths::single) return 1;
  if (lengths == Lengths::equal) return 2;
  if (lengths == Lengths::some_empty) return (from + to) % 2 ? 0 : 2;
  return 1 + (from + 2 * to) % 3;
}

/// One direction of one rank, and the bytes that its buffer must contain.
struct Blocks {
  Direction direction;
  Span span;
};

Blocks make(const CollectiveCall& call, bool out, const Type& type, int per, Lengths lengths, int spread, int rank,
            int ranks) {
  Blocks made;
  Direction& d = made.direction;
  d.type = *type.handle;
  const bool many = out ? call.many_out : call.many_in;
  const auto peer_length = [&](int peer) {
    // Lengths vary only in v- and w-forms. In rooted and allgather forms they depend on the rank that has one block.
    const bool varies = call.v || call.w;
    if (!varies) return per * length(lengths, 0, 0);
    if (call.rooted || !call.many_out) return per * length(lengths, peer, 0);
    return per * (out ? length(lengths, rank, peer) : length(lengths, peer, rank));
  };
  if (!many) {
    d.count = peer_length(rank);
    made.span.include(type.facts, 0, d.count);
    return made;
  }
  d.count = per * length(lengths, 0, 0);
  std::int64_t at = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    const int count = peer_length(peer);
    if (!call.v && !call.w) {
      made.span.include(type.facts, peer * d.count * type.facts.extent, d.count);
      continue;
    }
    d.counts.push_back(count);
    d.types.push_back(d.type);
    const std::int64_t step = 3 * std::int64_t{per} + spread;  // elements, more than the longest block
    d.at.push_back(static_cast<int>(call.w ? at * type.facts.extent + 8 * peer * spread : at));
    made.span.include(type.facts, call.w ? d.at.back() : at * type.facts.extent, count);
    at += step;
  }
  return made;
}

/// Runs a call in every form and compares it with the MPI library's own.
void compare(const CollectiveCall& call, const std::string& what, Blocks out, Blocks in, int root, MPI_Comm comm,
             bool in_place = false) {
  const ReturnErrors returned(comm);
  Buffer sent(out.span.low, out.span.high, outgoing_seed(world_rank()));
  const Buffer before = sent;
  const Buffer empty(in.span.low, in.span.high, incoming_seed + static_cast<std::uint64_t>(world_rank()));
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  const bool at_root = !call.rooted || rank == root;
  const auto run = [&](Form form, Buffer& received) {
    out.direction.buffer = sent.origin();
    in.direction.buffer = received.origin();
    if (in_place && at_root) {
      if (call.many_out && call.rooted)
        in.direction.buffer = MPI_IN_PLACE;
      else
        out.direction.buffer = MPI_IN_PLACE;
    }
    return call.run(form, out.direction, in.direction, root, comm);
  };
  Buffer expected = empty;
  const int own_error = run(Form::library, expected);
  for (const Form form : chosen_forms()) {
    Buffer received = empty;
    const int error = run(form, received);
    const std::string where = std::string(call.name) + " " + name(form) + " of " + what;
    if (error_class(error) != error_class(own_error))
      fail_check(__FILE__, __LINE__,
                 where + ": class " + std::to_string(error_class(error)) + ", the library's " +
                     std::to_string(error_class(own_error)));
    if (const auto wrong = received.difference(expected)) fail_check(__FILE__, __LINE__, where + ": " + *wrong);
    if (const auto wrong = sent.difference(before)) fail_check(__FILE__, __LINE__, where + ", sent: " + *wrong);
  }
}

/// One call with these types on its two sides. `per_out` elements of one have the same signature as `per_in` elements
/// of the other.
void compare_types(const CollectiveCall& call, const Type& out_type, int per_out, const Type& in_type, int per_in,
                   Lengths lengths, const std::string& what, MPI_Comm comm, int spread = 1, bool in_place = false) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (const int root : {0, ranks - 1}) {
    if (!call.rooted && root != 0) break;
    compare(call, what, make(call, true, out_type, per_out, lengths, spread, rank, ranks),
            make(call, false, in_type, per_in, lengths, spread, rank, ranks), root, comm, in_place);
  }
}

void all_lengths(const CollectiveCall& call, const Type& out, int per_out, const Type& in, int per_in,
                 const std::string& what, MPI_Comm comm) {
  for (const Lengths lengths : {Lengths::single, Lengths::equal, Lengths::some_empty, Lengths::varying}) {
    if (lengths > Lengths::equal && !call.v && !call.w) break;
    compare_types(call, out, per_out, in, per_in, lengths,
                  what + ", lengths " + std::to_string(static_cast<int>(lengths)), comm);
  }
}

}  // namespace

MPI_CASE(same_type_on_both_sides) {
  for (const CollectiveCall& call : collective_calls)
    for (const char* text : chosen_types()) {
      const Type type(text);
      for (int repeat = 0; repeat < 2; ++repeat) all_lengths(call, type, 1, type, 1, text, MPI_COMM_WORLD);
    }
}

MPI_CASE(doubles_on_one_side) {
  const Type plain("double");
  for (const CollectiveCall& call : collective_calls)
    for (const char* text : chosen_types()) {
      const Type type(text);
      all_lengths(call, type, 1, plain, type.doubles(), std::string(text) + " to doubles", MPI_COMM_WORLD);
      all_lengths(call, plain, type.doubles(), type, 1, "doubles to " + std::string(text), MPI_COMM_WORLD);
    }
}

MPI_CASE(structs_are_not_respelled) {
  const Type type(structs);
  for (const CollectiveCall& call : collective_calls) all_lengths(call, type, 1, type, 1, structs, MPI_COMM_WORLD);
}

MPI_CASE(displacements_that_cannot_be_converted) {
  // The extent is not a multiple of the loop's stride, so only some displacements are.
  const Type type("resized(0,1000,vector(60,1,2,double))"), even("resized(0,968,vector(60,1,2,double))");
  for (const CollectiveCall& call : collective_calls)
    for (const int spread : {0, 1, 5})
      for (const Type* each : {&type, &even})
        for (const Lengths lengths : {Lengths::single, Lengths::equal, Lengths::varying})
          compare_types(call, *each, 1, *each, 1, lengths, "spread " + std::to_string(spread), MPI_COMM_WORLD, spread);
}

MPI_CASE(in_place) {
  for (const CollectiveCall& call : collective_calls)
    for (const char* text : chosen_types()) {
      const Type type(text);
      compare_types(call, type, 1, type, 1, Lengths::equal, std::string(text) + " in place", MPI_COMM_WORLD, 1, true);
    }
}

MPI_CASE(zero_counts) {
  const Type type(types[0]);
  for (const CollectiveCall& call : collective_calls) {
    Blocks out = make(call, true, type, 1, Lengths::equal, 1, world_rank(), world_size());
    Blocks in = make(call, false, type, 1, Lengths::equal, 1, world_rank(), world_size());
    for (Blocks* blocks : {&out, &in}) {
      blocks->direction.count = 0;
      std::fill(blocks->direction.counts.begin(), blocks->direction.counts.end(), 0);
    }
    compare(call, "nothing", std::move(out), std::move(in), 0, MPI_COMM_WORLD);
  }
}

MPI_CASE(other_communicators) {
  const Type type(types[2]);
  MPI_Comm half, reversed;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  for (const CollectiveCall& call : collective_calls)
    for (const MPI_Comm comm : {half, reversed, MPI_COMM_SELF})
      all_lengths(call, type, 1, type, 1, "a communicator", comm);
  MPI_Comm_free(&half);
  MPI_Comm_free(&reversed);
}

MPI_CASE(between_two_groups) {
  if (world_size() < 2) return;
  const int side = world_rank() % 2;
  MPI_Comm half, inter;
  MPI_Comm_split(MPI_COMM_WORLD, side, 0, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 7, &inter);
  int others = 0;
  MPI_Comm_remote_size(inter, &others);
  const Type type(types[0]);
  Buffer sent(0, 2 * 960 * others, outgoing_seed(world_rank())), expected(0, 2 * 960 * others, incoming_seed),
      got = expected;
  for (int repeat = 0; repeat < 3; ++repeat) {
    PMPI_Alltoall(sent.origin(), 2, *type.handle, expected.origin(), 2, *type.handle, inter);
    MPI_Alltoall(sent.origin(), 2, *type.handle, got.origin(), 2, *type.handle, inter);
    if (const auto wrong = got.difference(expected)) fail_check(__FILE__, __LINE__, "alltoall " + *wrong);
    const int root = side == 0 ? (world_rank() == 0 ? MPI_ROOT : MPI_PROC_NULL) : 0;
    PMPI_Gather(sent.origin(), 2, *type.handle, expected.origin(), 2, *type.handle, root, inter);
    MPI_Gather(sent.origin(), 2, *type.handle, got.origin(), 2, *type.handle, root, inter);
    if (const auto wrong = got.difference(expected)) fail_check(__FILE__, __LINE__, "gather " + *wrong);
  }
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

MPI_CASE(errors_are_the_librarys) {
  const Type type(types[0]);
  for (const CollectiveCall& call : collective_calls) {
    const auto blocks = [&](bool out) {
      return make(call, out, type, 1, Lengths::equal, 1, world_rank(), world_size());
    };
    Blocks out = blocks(true), in = blocks(false);
    // Every rank has the negative count, so that no rank waits for another.
    out.direction.count = in.direction.count = -1;
    std::fill(out.direction.counts.begin(), out.direction.counts.end(), -1);
    std::fill(in.direction.counts.begin(), in.direction.counts.end(), -1);
    compare(call, "negative counts", out, in, 0, MPI_COMM_WORLD);
    out = blocks(true), in = blocks(false);
    MPI_Datatype uncommitted;
    MPI_Type_vector(60, 1, 2, MPI_DOUBLE, &uncommitted);
    out.direction.type = in.direction.type = uncommitted;
    std::fill(out.direction.types.begin(), out.direction.types.end(), uncommitted);
    std::fill(in.direction.types.begin(), in.direction.types.end(), uncommitted);
    compare(call, "uncommitted types", out, in, 0, MPI_COMM_WORLD);
    MPI_Type_free(&uncommitted);
  }
}

MPI_CASE(aliased_buffers_give_the_librarys_error) {
  // MPICH compares the send buffer with the receive buffer, or with the address rank * count * size bytes into it.
  // These addresses make every rank detect the error, so that no rank waits for another.
  for (const char* text : {types[0], types[1]}) {
    const Type type(text);
    const ReturnErrors returned(MPI_COMM_WORLD);
    Buffer data(0, 960 * 2 * world_size(), 5);
    for (const CollectiveCall& call : collective_calls) {
      if (call.rooted || call.v || call.w) continue;
      const Direction in{data.origin(), 1, *type.handle, {}, {}, {}};
      Direction out = in;
      if (!call.many_out) out.buffer = data.origin() + world_rank() * type.facts.size;
      const int own = call.run(Form::library, out, in, 0, MPI_COMM_WORLD);
      CHECK(own != MPI_SUCCESS);
      for (const Form form : intercepted_forms)
        CHECK_EQUAL(error_class(own), error_class(call.run(form, out, in, 0, MPI_COMM_WORLD)));
    }
  }
}

namespace {
Type* to_be_freed = nullptr;
}

MPI_CASE(types_freed_before_the_request_completes) {
  for (const CollectiveCall& call : collective_calls)
    for (const Form form : {Form::nonblocking, Form::nonblocking_c})
      for (const char* text : {types[0], types[9]}) {
        Type type(text);
        Blocks out = make(call, true, type, 1, Lengths::equal, 1, world_rank(), world_size());
        Blocks in = make(call, false, type, 1, Lengths::equal, 1, world_rank(), world_size());
        Buffer sent(out.span.low, out.span.high, outgoing_seed(world_rank()));
        Buffer expected(in.span.low, in.span.high, incoming_seed), received = expected;
        out.direction.buffer = sent.origin();
        in.direction.buffer = expected.origin();
        call.run(Form::library, out.direction, in.direction, 0, MPI_COMM_WORLD);
        in.direction.buffer = received.origin();
        to_be_freed = &type;
        after_the_call = [] {
          to_be_freed->handle->free();
          // The MPI library reuses the handle values, so the call fails if it uses a freed handle.
          const CommittedType other("vector(7,3,5,float)"), another("vector(9,1,3,short)");
        };
        call.run(form, out.direction, in.direction, 0, MPI_COMM_WORLD);
        after_the_call = nullptr;
        if (const auto wrong = received.difference(expected))
          fail_check(__FILE__, __LINE__, std::string(call.name) + " " + name(form) + ": " + *wrong);
      }
}

MPI_CASE(many_at_once) {
  const Type type(types[0]);
  constexpr int n = 40;
  const int ranks = world_size();
  std::vector<Buffer> sent, received, expected;
  std::vector<MPI_Request> requests(n);
  const std::vector<int> counts(static_cast<std::size_t>(ranks), 2);
  std::vector<std::vector<int>> at(n);
  for (int i = 0; i < n; ++i) {
    sent.emplace_back(0, 960 * 2 * ranks, outgoing_seed(world_rank() + 10 * i));
    received.emplace_back(0, 960 * 2 * ranks, incoming_seed);
    expected.push_back(received.back());
    for (int r = 0; r < ranks; ++r) at[static_cast<std::size_t>(i)].push_back(2 * r);
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 2)
      MPI_Ialltoall(sent[i].origin(), 2, *type.handle, received[i].origin(), 2, *type.handle, MPI_COMM_WORLD,
                    &requests[i]);
    else
      MPI_Ialltoallv(sent[i].origin(), counts.data(), at[i].data(), *type.handle, received[i].origin(), counts.data(),
                     at[i].data(), *type.handle, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; i < n; ++i) {
    PMPI_Alltoall(sent[i].origin(), 2, *type.handle, expected[i].origin(), 2, *type.handle, MPI_COMM_WORLD);
    if (const auto wrong = received[i].difference(expected[i])) fail_check(__FILE__, __LINE__, *wrong);
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
