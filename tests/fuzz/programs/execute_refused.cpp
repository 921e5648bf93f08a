// SPDX-License-Identifier: Apache-2.0
// Collective calls that MPICH refuses on one rank because of its arguments, before it communicates. The other ranks do
// not make them, and all make the right call afterwards. Initializations of persistent collectives are made by all;
// those that succeed are freed without a start. MPICH counts these, so nonblocking collectives of the communicator
// would hang afterwards: it is a new one, which has blocking collectives only.
#include <algorithm>

#include "tests/fuzz/programs/collective.hpp"
#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {
namespace {

constexpr What refusing[] = {What::bcast,          What::gather,
                             What::gatherv,        What::scatter,
                             What::scatterv,       What::allgather,
                             What::allgatherv,     What::alltoall,
                             What::alltoallv,      What::alltoallw,
                             What::reduce,         What::allreduce,
                             What::reduce_scatter, What::reduce_scatter_block};

/// One direction. `counts`, `at`, `types`: by rank, of the calls that have arrays.
struct PassedBlocks {
  Place buffer;
  int count;
  MPI_Datatype type;
  std::vector<int> counts, at;
  std::vector<MPI_Datatype> types;

  PassedBlocks(Place place, int n, MPI_Datatype each, int size, int displacement)
      : buffer(place), count(n), type(each) {
    for (int k = 0; k < size; ++k) {
      counts.push_back(n);
      at.push_back(k * n * displacement);
      types.push_back(each);
    }
  }
  void set_count(int n) {
    count = n;
    std::fill(counts.begin(), counts.end(), n);
  }
  void set_type(MPI_Datatype each) {
    type = each;
    std::fill(types.begin(), types.end(), each);
  }
};

struct Passed {
  PassedBlocks out, in;
  MPI_Op op;
  int root;
  bool aliased = false;  ///< the arrays of both directions are the same
};

/// `request`: initializes a persistent collective; nullptr: makes a blocking call.
int make_call(Context& context, What what, const Passed& given, MPI_Comm comm, MPI_Request* request = nullptr) {
  const auto& [out, in, op, root, aliased] = given;
  const std::vector<int>&in_counts = aliased ? out.counts : in.counts, &in_types = aliased ? out.types : in.types;
#define MAKE(name, ...)                                                                        \
  (request ? CALL(context, name##_init, __VA_ARGS__, MPI_INFO_NULL, (New{request, "request"})) \
           : CALL(context, name, __VA_ARGS__))
#define ONE(direction) direction.buffer, direction.count, direction.type
  switch (what) {
    case What::bcast: return MAKE(Bcast, ONE(in), root, comm);
    case What::gather: return MAKE(Gather, ONE(out), ONE(in), root, comm);
    case What::gatherv: return MAKE(Gatherv, ONE(out), in.buffer, in.counts, in.at, in.type, root, comm);
    case What::scatter: return MAKE(Scatter, ONE(out), ONE(in), root, comm);
    case What::scatterv: return MAKE(Scatterv, out.buffer, out.counts, out.at, out.type, ONE(in), root, comm);
    case What::allgather: return MAKE(Allgather, ONE(out), ONE(in), comm);
    case What::allgatherv: return MAKE(Allgatherv, ONE(out), in.buffer, in.counts, in.at, in.type, comm);
    case What::alltoall: return MAKE(Alltoall, ONE(out), ONE(in), comm);
    case What::alltoallv:
      return MAKE(Alltoallv, out.buffer, out.counts, out.at, out.type, in.buffer, in_counts, in.at, in.type, comm);
    case What::alltoallw:
      return MAKE(Alltoallw, out.buffer, out.counts, out.at, out.types, in.buffer, in_counts, in.at, in_types, comm);
    case What::reduce: return MAKE(Reduce, out.buffer, in.buffer, in.count, in.type, op, root, comm);
    case What::reduce_scatter: return MAKE(Reduce_scatter, out.buffer, in.buffer, in.counts, in.type, op, comm);
    case What::reduce_scatter_block:
      return MAKE(Reduce_scatter_block, out.buffer, in.buffer, in.count, in.type, op, comm);
    default: return MAKE(Allreduce, out.buffer, in.buffer, in.count, in.type, op, comm);
  }
#undef ONE
#undef MAKE
}

/// Which directions of a call are significant on this rank.
struct Significant {
  bool out, in;
  Significant(What what, bool at_root) : out(what != What::bcast), in(true) {
    if (what == What::gather || what == What::gatherv || what == What::reduce) in = at_root;
    if (what == What::scatter || what == What::scatterv) out = at_root;
  }
};

/// Makes one argument wrong, in a way that MPICH 4.0.2 finds. `own`: bytes from the beginning of the receive buffer to
/// this rank's block. False: this way does not apply to the call.
bool spoil(Passed& given, What what, bool at_root, int way, int size, std::int64_t own, MPI_Datatype uncommitted) {
  const Significant significant(what, at_root);
  const bool sums = reduces(what), in = significant.in;
  const bool type_of_out = significant.out && !sums, both = significant.out && in;
  const bool scatters = what == What::scatter || what == What::scatterv;
  switch (way) {
    case 0: return given.root = size + 3, rooted(what);
    case 1: return given.root = -7, rooted(what);
    case 2: return given.op = MPI_OP_NULL, sums;
    case 3: return given.op = MPI_BAND, given.in.set_type(MPI_DOUBLE), sums;
    case 4: return given.op = MPI_MINLOC, sums;
    case 5: return given.in.set_type(MPI_DATATYPE_NULL), in || sums;
    case 6: return given.in.set_type(uncommitted), in || sums;
    case 7: return given.out.set_type(MPI_DATATYPE_NULL), type_of_out;
    case 8: return given.out.set_type(uncommitted), type_of_out;
    // With a negative count, MPICH aborts in the reductions of one count.
    case 9: return given.in.set_count(-1), in && (!sums || what == What::reduce_scatter);
    case 10: return given.out.set_count(-1), type_of_out;
    case 11:
      return given.in.counts.back() = -3, in && (what == What::gatherv || what == What::alltoallv ||
                                                 what == What::alltoallw || what == What::allgatherv);
    case 12: return given.in.buffer = {}, in;
    case 13: return given.out.buffer = {}, significant.out;
    case 14: return given.in.buffer = {MPI_IN_PLACE}, both && !scatters;
    case 15: return given.out.buffer = {MPI_IN_PLACE}, scatters && at_root;
    case 16: given.aliased = true; [[fallthrough]];
    default: {
      if (!both) return false;
      const bool to_own =
          what == What::gather || what == What::gatherv || what == What::allgather || what == What::allgatherv;
      if (scatters)
        given.in.buffer = {given.out.buffer.at, own};
      else
        given.out.buffer = {given.in.buffer.at, to_own ? own : 0};
      return given.aliased || (what != What::alltoallv && what != What::alltoallw);
    }
  }
}
constexpr int ways_to_spoil = 18;

}  // namespace

void refused(Context& context, const Step& step, const CommSlot& slot, Random& common) {
  const int size = slot.group().size();
  MPI_Datatype uncommitted = MPI_DATATYPE_NULL;
  CALL(context, Type_contiguous, 2, MPI_INT, (New{&uncommitted, "t"}));
  for (int round = static_cast<int>(common.between(1, 8)); round > 0; --round) {
    const What what = common.pick(refusing);
    constexpr int lengths[] = {1, 40, 700, 6000};
    const int n = common.pick(lengths), root = static_cast<int>(common.between(0, size - 1)),
              odd = static_cast<int>(common.between(0, size - 1)),
              way = static_cast<int>(common.between(0, ways_to_spoil - 1));
    const bool waits = common.chance(30), persistent = common.chance(30);
    MPI_Comm comm = slot.h;
    if (persistent) CALL(context, Comm_dup, slot.h, (New{&comm, "comm"}));
    const auto seed = [&](std::uint64_t which) {
      return seed_of(step, which, static_cast<std::uint64_t>(slot.rank), static_cast<std::uint64_t>(round));
    };
    Buffer out(context, {seed(7), 0, 0, 4 * n * size}), in(context, {seed(8), 0, 0, 4 * n * size});
    const int displacement = what == What::alltoallw ? 4 : 1;
    const Passed right{
        {{out.at()}, n, MPI_INT, size, displacement}, {{in.at()}, n, MPI_INT, size, displacement}, MPI_SUM, root};
    if (persistent) {
      MPI_Request request = MPI_REQUEST_NULL;
      Passed given = right;
      if (slot.rank == odd && !spoil(given, what, odd == root, way, size, std::int64_t{4} * n * odd, uncommitted))
        given = right;
      make_call(context, what, given, comm, &request);
      if (request != MPI_REQUEST_NULL) CALL(context, Request_free, Gone{&request});
    } else if (slot.rank == odd)
      for (int attempt = static_cast<int>(context.own.between(1, 2)); attempt > 0; --attempt)
        if (Passed wrong = right; spoil(wrong, what, odd == root, way, size, std::int64_t{4} * n * odd, uncommitted))
          make_call(context, what, wrong, comm);
    // The others may wait for this rank before they make the right call.
    if (waits && size > 1) {
      char byte = 0;
      if (slot.rank == odd)
        for (int other = 0; other < size; ++other) {
          if (other != odd) CALL(context, Send, static_cast<const void*>(nullptr), 0, MPI_BYTE, other, 3, comm);
        }
      else
        CALL(context, Recv, static_cast<void*>(&byte), 0, MPI_BYTE, odd, 3, comm, MPI_STATUS_IGNORE);
    }
    make_call(context, what, right, comm);
    in.report(context, "refused");
    if (persistent) CALL(context, Comm_free, Gone{&comm});
  }
  CALL(context, Type_free, Gone{&uncommitted});
}

}  // namespace bestride::fuzz
