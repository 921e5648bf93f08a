// SPDX-License-Identifier: Apache-2.0
// Neighbor collectives of ranks on one node. Each call is made twice in the same form: as an application makes it, by
// its MPI_ or its PMPI_ name, and by the MPI library's own function, which nothing intercepts. The bytes must be the
// same, also in the gaps of datatypes, and also if several edges join the same two ranks.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "tests/hierarchical/job.hpp"
#include "tests/support/harness.hpp"

using namespace bestride::test;

namespace {

using Random = std::mt19937;
int draw(Random& random, int bound) { return static_cast<int>(random() % static_cast<unsigned>(bound)); }

/// Types of one int per element: without gaps, with a gap behind it, and with gaps on both sides.
class Types {
 public:
  Types() {
    const int one = 1;
    const MPI_Aint at = 4;
    MPI_Datatype inner, types[3];
    MPI_Type_dup(MPI_INT, &types[0]);
    MPI_Type_create_resized(MPI_INT, 0, 8, &types[1]);
    MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 12, &types[2]);
    MPI_Type_free(&inner);
    for (MPI_Datatype& type : types) MPI_Type_commit(&type);
    all_ = {MPI_INT, types[0], types[1], types[2]};
  }
  ~Types() {
    for (std::size_t i = 1; i < all_.size(); ++i) MPI_Type_free(&all_[i]);
  }
  MPI_Datatype any(Random& random) const { return all_[static_cast<std::size_t>(draw(random, 4))]; }

 private:
  std::vector<MPI_Datatype> all_;
};
constexpr int longest_extent = 12;

/// A communicator with a virtual topology, and this rank's neighbors.
struct Topology {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> sources, destinations;
  bool equal_degrees = true;  ///< on all ranks
  int calls = 0, starts = 0;  ///< blocking and nonblocking calls

  /// `common`: the same on all ranks.
  explicit Topology(Random& common) {
    switch (draw(common, 3)) {
      case 0: make_cart(common); break;
      case 1: make_graph(common); break;
      default: make_dist_graph(common);
    }
  }
  ~Topology() { MPI_Comm_free(&comm); }
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

 private:
  void make_cart(Random& common) {
    const int dimensions = 1 + draw(common, 3);
    std::vector<int> extent(static_cast<std::size_t>(dimensions)), periodic;
    MPI_Dims_create(world_size(), dimensions, extent.data());
    for (int i = 0; i < dimensions; ++i) periodic.push_back(draw(common, 2));
    MPI_Cart_create(MPI_COMM_WORLD, dimensions, extent.data(), periodic.data(), 0, &comm);
    for (int i = 0; i < dimensions; ++i) {
      int before, after;
      MPI_Cart_shift(comm, i, 1, &before, &after);
      sources.insert(sources.end(), {before, after});
    }
    destinations = sources;
  }
  void make_graph(Random& common) {
    std::vector<std::vector<int>> lists(static_cast<std::size_t>(world_size()));
    for (int one = 0; one < world_size(); ++one)
      for (int other = one; other < world_size(); ++other)
        if (draw(common, 2)) {
          lists[static_cast<std::size_t>(one)].push_back(other);
          if (one != other) lists[static_cast<std::size_t>(other)].push_back(one);
        }
    std::vector<int> index, edges{};
    for (const auto& list : lists) {
      edges.insert(edges.end(), list.begin(), list.end());
      index.push_back(static_cast<int>(edges.size()));
    }
    sources = destinations = lists[static_cast<std::size_t>(world_rank())];
    edges.push_back(0);  // not a null pointer
    MPI_Graph_create(MPI_COMM_WORLD, world_size(), index.data(), edges.data(), 0, &comm);
  }
  void make_dist_graph(Random& common) {
    const bool several = draw(common, 2);
    std::vector<int> in(static_cast<std::size_t>(world_size())), out(in);
    for (int from = 0; from < world_size(); ++from)
      for (int to = 0; to < world_size(); ++to)
        for (int edges = several ? draw(common, 4) : draw(common, 2); edges > 0; --edges) {
          ++out[static_cast<std::size_t>(from)];
          ++in[static_cast<std::size_t>(to)];
          if (from == world_rank()) destinations.push_back(to);
          if (to == world_rank()) sources.push_back(from);
        }
    equal_degrees = in == out;
    Random own(common() + static_cast<unsigned>(world_rank()));
    std::shuffle(sources.begin(), sources.end(), own);
    std::shuffle(destinations.begin(), destinations.end(), own);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, static_cast<int>(sources.size()), sources.data(), MPI_UNWEIGHTED,
                                   static_cast<int>(destinations.size()), destinations.data(), MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
  }
};

enum Procedure { allgather, allgatherv, alltoall, alltoallv, alltoallw };

/// One direction of a call.
struct Side {
  std::vector<int> counts, at;
  std::vector<MPI_Aint> bytes;
  std::vector<MPI_Datatype> types;
  std::vector<char> data;

  /// `count(peer)`: elements of the block of a neighbor. `single`: one block for all.
  template <class Count>
  Side(Procedure procedure, const std::vector<int>& peers, bool single, Count count, const Types& all, Random& own) {
    const std::size_t blocks = single ? 1 : peers.size();
    int first = 0;  // elements
    MPI_Datatype type = all.any(own);
    for (std::size_t i = 0; i < blocks; ++i) {
      if (procedure == alltoallw) type = all.any(own);
      types.push_back(type);
      counts.push_back(count(single ? 0 : std::max(0, peers[i])));  // MPI_PROC_NULL is negative
      const bool apart = procedure != allgather && procedure != alltoall && draw(own, 2);
      at.push_back(first += apart);
      bytes.push_back(MPI_Aint{first} * longest_extent);
      first += counts.back();
    }
    data.resize(static_cast<std::size_t>(first + 1) * longest_extent);
    // The library checks the arrays even if there is no neighbor.
    if (blocks == 0) counts.push_back(0), at.push_back(0), bytes.push_back(0), types.push_back(MPI_INT);
  }
};

/// A call from its start to its end; persistent calls are started several times.
class Exchange {
 public:
  enum class Form { blocking, nonblocking, persistent };
  enum class Name { application, tool, library };  ///< MPI_, PMPI_, or the library's own function

  Exchange(Form form, Name name, Procedure procedure, const Side& out, const Side& in, char* to, MPI_Comm comm)
      : form_(form) {
    error_ = name == Name::application ? call_by_name(procedure, out, in, to, comm)
             : name == Name::tool      ? call_by_profiling_name(procedure, out, in, to, comm)
                                       : call_library(procedure, out, in, to, comm);
  }
  Exchange(const Exchange&) = delete;
  ~Exchange() {
    if (request_ != MPI_REQUEST_NULL) MPI_Request_free(&request_);
  }
  /// Starts it if it is persistent, and waits for its end.
  int end() {
    if (error_ == MPI_SUCCESS && form_ == Form::persistent) error_ = MPI_Start(&request_);
    if (error_ == MPI_SUCCESS && form_ != Form::blocking) error_ = MPI_Wait(&request_, MPI_STATUS_IGNORE);
    return error_;
  }

 private:
// `function`: a macro that makes the name of a function. `...`: further arguments.
#define ARGUMENTS_allgather out.data.data(), out.counts[0], out.types[0], to, in.counts[0], in.types[0], comm
#define ARGUMENTS_allgatherv \
  out.data.data(), out.counts[0], out.types[0], to, in.counts.data(), in.at.data(), in.types[0], comm
#define ARGUMENTS_alltoall ARGUMENTS_allgather
#define ARGUMENTS_alltoallv \
  out.data.data(), out.counts.data(), out.at.data(), out.types[0], to, in.counts.data(), in.at.data(), in.types[0], comm
#define ARGUMENTS_alltoallw                                                                                      \
  out.data.data(), out.counts.data(), out.bytes.data(), out.types.data(), to, in.counts.data(), in.bytes.data(), \
      in.types.data(), comm
#define IN_FORM(function, Name)                                                                   \
  switch (form_) {                                                                                \
    case Form::blocking: return function(Neighbor_##Name)(ARGUMENTS_##Name);                      \
    case Form::nonblocking: return function(Ineighbor_##Name)(ARGUMENTS_##Name, &request_);       \
    default: return function(Neighbor_##Name##_init)(ARGUMENTS_##Name, MPI_INFO_NULL, &request_); \
  }
#define ALL_PROCEDURES(function)                   \
  switch (procedure) {                             \
    case allgather: IN_FORM(function, allgather)   \
    case allgatherv: IN_FORM(function, allgatherv) \
    case alltoall: IN_FORM(function, alltoall)     \
    case alltoallv: IN_FORM(function, alltoallv)   \
    default: IN_FORM(function, alltoallw)          \
  }
#define BY_NAME(name) MPI_##name
#define BY_PROFILING_NAME(name) PMPI_##name
#define BY_LIBRARY(name) reinterpret_cast<decltype(&PMPI_##name)>(library_function("PMPI_" #name))
  int call_by_name(Procedure procedure, const Side& out, const Side& in, char* to, MPI_Comm comm) {
    ALL_PROCEDURES(BY_NAME)
  }
  int call_by_profiling_name(Procedure procedure, const Side& out, const Side& in, char* to, MPI_Comm comm) {
    ALL_PROCEDURES(BY_PROFILING_NAME)
  }
  int call_library(Procedure procedure, const Side& out, const Side& in, char* to, MPI_Comm comm) {
    // MPICH 4.0.2 reads wrong int counts if the degrees differ.
    if (procedure == alltoallw) return call_library_with_large_counts(out, in, to, comm);
    ALL_PROCEDURES(BY_LIBRARY)
  }
  int call_library_with_large_counts(const Side& out, const Side& in, char* to, MPI_Comm comm) {
    const std::vector<MPI_Count> sent(out.counts.begin(), out.counts.end());
    const std::vector<MPI_Count> received(in.counts.begin(), in.counts.end());
    const auto call = [&](auto function, auto... tail) {
      return function(out.data.data(), sent.data(), out.bytes.data(), out.types.data(), to, received.data(),
                      in.bytes.data(), in.types.data(), comm, tail...);
    };
    switch (form_) {
      case Form::blocking: return call(BY_LIBRARY(Neighbor_alltoallw_c));
      case Form::nonblocking: return call(BY_LIBRARY(Ineighbor_alltoallw_c), &request_);
      default: return call(BY_LIBRARY(Neighbor_alltoallw_init_c), MPI_INFO_NULL, &request_);
    }
  }

  const Form form_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int error_ = MPI_SUCCESS;
};

/// With a low limit, memory for so many topologies and persistent calls at once is not available.
bool low_limit() { return std::getenv("BESTRIDE_WINDOW_LIMIT") != nullptr; }

/// How many collectives must reach the library in the next call; -1: not known. Counts the call.
int expected_calls(Topology& topology, Procedure procedure, Exchange::Form form) {
  const int earlier = form == Exchange::Form::blocking      ? topology.calls++
                      : form == Exchange::Form::nonblocking ? topology.starts++
                                                            : 2;
  if (expectation() == Expectation::nothing) return -1;
  if (procedure == alltoallw && !topology.equal_degrees) return 1;
  // Without memory, nonblocking calls go by messages.
  const char* const failure = std::getenv("BESTRIDE_FORCE");
  if (expectation() == Expectation::library)
    return form == Exchange::Form::nonblocking && failure && std::string_view(failure) == "fail=window" && earlier >= 2
               ? 0
               : 1;
  if (form != Exchange::Form::blocking && low_limit()) return -1;
  return earlier < 2 ? 1 : 0;
}

/// `room`: blocks may have room for more than arrives.
void compare_one_call(Topology& topology, const Types& types, bool room, Random& common) {
  auto procedure = static_cast<Procedure>(draw(common, 5));
  // A rank without memory to know a communicator gives MPICH 4.0.2 the int counts, of which it reads wrong ones.
  if (procedure == alltoallw && !topology.equal_degrees && std::getenv("TEST_UNKNOWN_COMMUNICATOR"))
    procedure = alltoallv;
  const int sizes[] = {0, 1, 7, 300, 3000, 6000, 40'000};
  const int base = sizes[draw(common, 7)];
  const bool varies = procedure == allgatherv || procedure >= alltoallv;
  const auto count = [&](int from, int to) {
    return varies ? base * ((from + (procedure == allgatherv ? 0 : 2 * to)) % 3) / 2 : base;
  };
  Random own(common() + static_cast<unsigned>(world_rank()));
  const bool single = procedure <= allgatherv;
  Side out(
      procedure, topology.destinations, single, [&](int peer) { return count(world_rank(), single ? 0 : peer); }, types,
      own);
  const int more = room && varies ? draw(own, 3) : 0;
  Side in(
      procedure, topology.sources, false, [&](int peer) { return count(peer, world_rank()) + more; }, types, own);
  for (char& byte : in.data) byte = static_cast<char>(own());
  for (char& byte : out.data) byte = static_cast<char>(own());
  std::vector<char> expected = in.data;
  const auto form = static_cast<Exchange::Form>(draw(common, 3));
  const int before = calls_seen_by_library();
  // A tool may call the profiling name, perhaps on some ranks only.
  const auto name = draw(own, 4) == 0 ? Exchange::Name::tool : Exchange::Name::application;
  Exchange exchange(form, name, procedure, out, in, in.data.data(), topology.comm);
  const int expected_here = expected_calls(topology, procedure, form);
  // The counter sees MPI_ names only.
  if (name == Exchange::Name::application && expected_here >= 0)
    CHECK_EQUAL(expected_here, calls_seen_by_library() - before);
  for (int start = form == Exchange::Form::persistent ? 1 + draw(common, 3) : 1; start > 0; --start) {
    if (form == Exchange::Form::persistent)
      for (char& byte : out.data) byte = static_cast<char>(own());
    const std::vector<char> sent = out.data;
    CHECK_EQUAL(MPI_SUCCESS, exchange.end());
    Exchange by_library(form, Exchange::Name::library, procedure, out, in, expected.data(), topology.comm);
    CHECK_EQUAL(MPI_SUCCESS, by_library.end());
    CHECK(out.data == sent);
    CHECK(in.data == expected);
  }
}

/// Sequences of calls on one topology for each seed.
void compare_calls(unsigned first_seed, unsigned end, bool room) {
  const Types types;
  for (unsigned seed = first_seed; seed < end; ++seed) {
    Random common(seed);
    Topology topology(common);
    for (int calls = 3 + draw(common, 6); calls > 0; --calls) compare_one_call(topology, types, room, common);
  }
}

/// Ranks 0 and 1 are neighbors of each other; the others have none.
MPI_Comm pair_of_neighbors() {
  const int peer = 1 - world_rank(), degree = world_rank() < 2 ? 1 : 0;
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, &peer, MPI_UNWEIGHTED, degree, &peer, MPI_UNWEIGHTED,
                                 MPI_INFO_NULL, 0, &comm);
  return comm;
}
int exchange_ints(const std::vector<int>& out, std::vector<int>& in, MPI_Comm comm) {
  const int sent = static_cast<int>(out.size()), received = static_cast<int>(in.size()), at = 0;
  return MPI_Neighbor_alltoallv(out.data(), &sent, &at, MPI_INT, in.data(), &received, &at, MPI_INT, comm);
}

}  // namespace

MPI_CASE(random_calls) { compare_calls(0, 60, false); }

/// Several nonblocking and persistent calls at once, which end in another order on each rank, with blocking calls in
/// between.
MPI_CASE(several_at_once) {
  const Types types;
  constexpr int width = 3000;  // elements, more than a slot
  for (unsigned seed = 200; seed < 220; ++seed) {
    Random common(seed), own(seed + 1000 * static_cast<unsigned>(1 + world_rank()));
    const Topology topology(common);
    const std::size_t sources = topology.sources.size();
    const auto blocks = [&](int call) {
      std::vector<int> data(width * (topology.destinations.size() + 1));
      for (std::size_t i = 0; i < data.size(); ++i)
        data[i] = (world_rank() * 100 + call) * 1000 + static_cast<int>(i / width);
      return data;
    };
    constexpr int calls = 6, persistent = 2;
    std::vector<std::vector<int>> out, in, expected;
    std::vector<MPI_Request> requests(calls);
    for (int call = 0; call < calls; ++call) {
      out.push_back(blocks(call));
      in.emplace_back(width * (sources + 1), -1);
      expected.push_back(in.back());
    }
    const auto exchange =
        reinterpret_cast<decltype(&PMPI_Ineighbor_alltoall)>(library_function("PMPI_Ineighbor_alltoall"));
    for (std::size_t call = 0; call < calls; ++call) {
      MPI_Request request;
      exchange(out[call].data(), width, MPI_INT, expected[call].data(), width, MPI_INT, topology.comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    for (std::size_t call = 0; call < persistent; ++call)
      MPI_Neighbor_alltoall_init(out[call].data(), width, MPI_INT, in[call].data(), width, MPI_INT, topology.comm,
                                 MPI_INFO_NULL, &requests[call]);
    for (int round = 0; round < 4; ++round) {
      for (auto& data : in) std::fill(data.begin(), data.end(), -1);
      // Members may start persistent collectives in any order.
      const std::size_t first = own() % 2;
      MPI_Start(&requests[first]);
      for (std::size_t call = persistent; call < calls; ++call)
        MPI_Ineighbor_alltoall(out[call].data(), width, MPI_INT, in[call].data(), width, MPI_INT, topology.comm,
                               &requests[call]);
      MPI_Start(&requests[1 - first]);
      // The other members may already be in the blocking call, in which they still have to take part in these.
      if (own() % 2) MPI_Waitall(calls, requests.data(), MPI_STATUSES_IGNORE);
      std::vector<int> blocking(width * (sources + 1), -1);
      MPI_Neighbor_alltoall(out[0].data(), width, MPI_INT, blocking.data(), width, MPI_INT, topology.comm);
      std::vector<std::size_t> order = {0, 1, 2, 3, 4, 5};
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t call : order) {
        CHECK_EQUAL(MPI_SUCCESS, MPI_Wait(&requests[call], MPI_STATUS_IGNORE));
        CHECK(in[call] == expected[call]);
      }
    }
    for (std::size_t call = 0; call < persistent; ++call) MPI_Request_free(&requests[call]);
  }
}

/// Some ranks wait for a nonblocking call before they initialize a persistent one, others do it the other way round.
MPI_CASE(initialized_while_pending) {
  MPI_Comm comm = pair_of_neighbors();
  constexpr int size = 50'000;
  for (int call = 0; call < 6; ++call) {
    std::vector<int> out(size, world_rank() + call), in(size, -1), got(size, -1);
    const int count = world_rank() < 2 ? size : 0;
    MPI_Request pending, persistent;
    MPI_Ineighbor_alltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm, &pending);
    if (world_rank() == call % 2) MPI_Wait(&pending, MPI_STATUS_IGNORE);
    MPI_Neighbor_alltoall_init(out.data(), count, MPI_INT, got.data(), count, MPI_INT, comm, MPI_INFO_NULL,
                               &persistent);
    MPI_Start(&persistent);
    MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    MPI_Wait(&pending, MPI_STATUS_IGNORE);
    MPI_Request_free(&persistent);
    const std::vector<int> expected(size, world_rank() < 2 ? 1 - world_rank() + call : -1);
    CHECK(in == expected);
    CHECK(got == expected);
  }
  MPI_Comm_free(&comm);
}

/// The standard forbids this, but it works in MPICH.
MPI_CASE(blocks_longer_than_messages) { compare_calls(100, 115, true); }

/// Ranks that are not neighbors do not wait for each other once the memory exists: the last rank makes its calls only
/// after the first rank has made all of its own.
MPI_CASE(no_waiting_for_others) {
  MPI_Comm comm = pair_of_neighbors();
  constexpr int first = 3, calls = 40;
  std::vector<int> out(100, world_rank()), in(100);
  const bool last = world_rank() == world_size() - 1 && world_size() > 2;
  for (int call = 0; call < first; ++call) exchange_ints(out, in, comm);
  if (last) MPI_Recv(nullptr, 0, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int call = 0; call < calls; ++call) exchange_ints(out, in, comm);
  if (world_rank() == 0 && world_size() > 2) MPI_Send(nullptr, 0, MPI_BYTE, world_size() - 1, 0, MPI_COMM_WORLD);
  if (world_rank() < 2) CHECK(in == std::vector<int>(100, 1 - world_rank()));
  MPI_Comm_free(&comm);
}

/// With a low limit, the shared memory would be too large for so many edges, and calls go to the library.
MPI_CASE(many_edges) {
  constexpr int edges = 300;
  const int next = (world_rank() + 1) % world_size(), before = (world_rank() + world_size() - 1) % world_size();
  const std::vector<int> destinations(edges, next), sources(edges, before);
  MPI_Comm comm;
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, edges, sources.data(), MPI_UNWEIGHTED, edges, destinations.data(),
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
  std::vector<int> out(edges, world_rank()), in(edges);
  const int seen = calls_seen_by_library();
  constexpr int calls = 5;
  for (int call = 0; call < calls; ++call) {
    CHECK_EQUAL(MPI_SUCCESS, MPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm));
    CHECK(in == std::vector<int>(edges, before));
  }
  if (expectation() == Expectation::hierarchical) CHECK_EQUAL(low_limit() ? calls : 2, calls_seen_by_library() - seen);
  for (int call = 0; call < calls; ++call) {
    std::fill(in.begin(), in.end(), -1);
    MPI_Request request;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Ineighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in == std::vector<int>(edges, before));
  }
  if (expectation() == Expectation::hierarchical)
    CHECK_EQUAL(low_limit() ? 2 * calls : 4, calls_seen_by_library() - seen);
  MPI_Comm_free(&comm);
}

/// If many communicators were created before, the edges that nonblocking calls need are looked for when these have been
/// many, in the next call that may wait; those of a grid that is known need no such call.
MPI_CASE(edges_found_late) {
  if (expectation() != Expectation::nothing || !std::getenv("TEST_LATE")) return;
  const int next = (world_rank() + 1) % world_size(), before = (world_rank() + world_size() - 1) % world_size();
  const int periodic = 1, ranks = world_size();
  const auto grid = [&] {
    MPI_Comm comm;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &comm);
    return comm;
  };
  const auto graph = [&] {
    MPI_Comm comm;
    const int sources[] = {before, next}, destinations[] = {before, next};
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &comm);
    return comm;
  };
  const auto calls_left = [&](MPI_Comm comm, bool blocking) {
    const int seen = calls_seen_by_library();
    for (int call = 0; call < 100; ++call) {
      const std::vector<int> out{10 * world_rank() + call, 10 * world_rank() + call + 5};
      std::vector<int> in(2, -1);
      MPI_Request request = MPI_REQUEST_NULL;
      if (blocking && call == 80)
        MPI_Neighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm);
      else
        MPI_Ineighbor_alltoall(out.data(), 1, MPI_INT, in.data(), 1, MPI_INT, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (world_size() > 2) CHECK(in == (std::vector<int>{10 * before + call + 5, 10 * next + call}));
    }
    return calls_seen_by_library() - seen;
  };
  MPI_Comm early = grid();
  CHECK_EQUAL(64, calls_left(early, false));
  MPI_Comm_free(&early);
  for (int i = 0; i < 20; ++i) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  }
  MPI_Comm known = grid(), unknown = graph(), waiting = graph();
  CHECK_EQUAL(64, calls_left(known, false));
  CHECK_EQUAL(100, calls_left(unknown, false));
  CHECK_EQUAL(81, calls_left(waiting, true));
  for (MPI_Comm* comm : {&known, &unknown, &waiting}) MPI_Comm_free(comm);
}

/// Calls that the library rejects on one rank, which the others do not make, change nothing for the calls of all.
MPI_CASE(rejected_calls) {
  MPI_Comm comm = pair_of_neighbors();
  {
    const ReturnErrors returns(comm);
    MPI_Datatype uncommitted;
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    for (int call = 0; call < 6; ++call) {
      std::vector<int> out(10, world_rank() + call), in(10);
      for (int wrong = 0; wrong < (world_rank() == call % 2 ? 3 : 0); ++wrong) {
        const MPI_Datatype types[] = {MPI_INT, MPI_DATATYPE_NULL, uncommitted};
        CHECK(MPI_Neighbor_alltoall(out.data(), wrong == 0 ? -1 : 2, types[wrong], in.data(), 2, MPI_INT, comm) !=
              MPI_SUCCESS);
      }
      CHECK_EQUAL(MPI_SUCCESS, exchange_ints(out, in, comm));
      if (world_rank() < 2) CHECK(in == std::vector<int>(10, 1 - world_rank() + call));
    }
    MPI_Type_free(&uncommitted);
  }
  MPI_Comm_free(&comm);
}

/// A message that is longer than its block: MPICH 4.0.2 returns MPI_SUCCESS and leaves the block undefined. The next
/// call is as if nothing had happened.
MPI_CASE(truncated_message) {
  MPI_Comm comm = pair_of_neighbors();
  for (const std::size_t size : {std::size_t{100}, std::size_t{50'000}})
    for (int call = 0; call < 6; ++call) {
      const bool truncated = call % 2 == 1 && world_rank() == 0;
      std::vector<int> out(size, world_rank() + call), in(truncated ? size / 2 : size);
      CHECK_EQUAL(MPI_SUCCESS, exchange_ints(out, in, comm));
      if (world_rank() < 2 && !truncated) CHECK(in == std::vector<int>(size, 1 - world_rank() + call));
    }
  for (int call = 0; call < 6; ++call) {
    const int size = 20'000, received = call % 2 == 1 && world_rank() == 0 ? size / 2 : size, at = 0;
    std::vector<int> out(size, world_rank() + call), in(size);
    MPI_Request request;
    CHECK_EQUAL(MPI_SUCCESS, MPI_Ineighbor_alltoallv(out.data(), &size, &at, MPI_INT, in.data(), &received, &at,
                                                     MPI_INT, comm, &request));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (world_rank() < 2 && received == size) CHECK(in == std::vector<int>(size, 1 - world_rank() + call));
  }
  MPI_Comm_free(&comm);
}

/// Graphs whose edges have one end only: an MPI library makes them, but its neighbor collectives would wait forever.
MPI_CASE(edges_with_one_end) {
  const int ranks = world_size(), next = (world_rank() + 1) % ranks, last = ranks - 1;
  std::vector<int> twice_to_next, ends;
  for (int rank = 0; rank < ranks; ++rank) {
    twice_to_next.insert(twice_to_next.end(), 2, (rank + 1) % ranks);
    ends.push_back(2 * rank + 2);
  }
  for (int graph = 0; graph < 3; ++graph) {
    MPI_Comm comm;
    if (graph == 0)
      MPI_Graph_create(MPI_COMM_WORLD, ranks, ends.data(), twice_to_next.data(), 0, &comm);
    else if (graph == 1)  // nobody receives
      MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, nullptr, MPI_UNWEIGHTED, 1, &next, MPI_UNWEIGHTED,
                                     MPI_INFO_NULL, 0, &comm);
    else  // one receives, from itself, which does not send
      MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, world_rank() == last, &last, MPI_UNWEIGHTED, 0, nullptr,
                                     MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    for (int call = 0; call < 4; ++call) {
      std::vector<int> in(5000, world_rank()), sum(5000);
      CHECK_EQUAL(MPI_SUCCESS, MPI_Allreduce(in.data(), sum.data(), 5000, MPI_INT, MPI_SUM, comm));
      CHECK(sum == std::vector<int>(5000, ranks * (ranks - 1) / 2));
    }
    MPI_Comm_free(&comm);
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv); }
