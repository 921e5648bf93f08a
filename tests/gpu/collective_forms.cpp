// SPDX-License-Identifier: Apache-2.0
#include "tests/gpu/collective_forms.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::test {
namespace {

/// The arrays of a direction as the large-count types. They must live until the call completes.
struct Large {
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> at;
  explicit Large(const Ends& from)
      : counts(from.counts.begin(), from.counts.end()), at(from.at.begin(), from.at.end()) {}
};

int complete(int error, MPI_Request* request) {
  return error != MPI_SUCCESS ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}

int twice(int error, MPI_Request* request, void (*again)()) {
  if (error != MPI_SUCCESS) return error;
  for (int i = 0; i < 2 && error == MPI_SUCCESS; ++i) {
    if (i == 1) again();
    error = MPI_Start(request);
    if (error == MPI_SUCCESS) error = MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  const int freed = MPI_Request_free(request);
  return error != MPI_SUCCESS ? error : freed;
}

}  // namespace

const char* name(Form form) {
  constexpr const char* names[] = {"library",    "blocking",      "nonblocking", "persistent",
                                   "blocking_c", "nonblocking_c", "persistent_c"};
  return names[static_cast<int>(form)];
}

#define LIST(...) __VA_ARGS__
// `arguments` and `large`: the arguments that all forms have in common, in parentheses.
#define RUN(Name, Iname, arguments, large)                                                           \
  [](Form form, const Arguments& a, void (*again)()) -> int {                                        \
    const Large out(a.out), in(a.in);                                                                \
    MPI_Request request = MPI_REQUEST_NULL;                                                          \
    switch (form) {                                                                                  \
      case Form::library: return PMPI_##Name(LIST arguments);                                        \
      case Form::blocking: return MPI_##Name(LIST arguments);                                        \
      case Form::nonblocking: return complete(MPI_##Iname(LIST arguments, &request), &request);      \
      case Form::persistent:                                                                         \
          return twice(MPI_##Name##_init(LIST arguments, MPI_INFO_NULL, &request), &request, again); \
      case Form::blocking_c: return MPI_##Name##_c(LIST large);                                      \
      case Form::nonblocking_c: return complete(MPI_##Iname##_c(LIST large, &request), &request);    \
      case Form::persistent_c:                                                                       \
          return twice(MPI_##Name##_init_c(LIST large, MPI_INFO_NULL, &request), &request, again);   \
    }                                                                                                \
    return MPI_ERR_OTHER;                                                                            \
  }
#define SEND a.out.buffer, a.out.count, a.out.type
#define RECEIVE a.in.buffer, a.in.count, a.in.type
#define SEND_V a.out.buffer, a.out.counts.data(), a.out.at.data(), a.out.type
#define RECEIVE_V a.in.buffer, a.in.counts.data(), a.in.at.data(), a.in.type
#define SEND_VC a.out.buffer, out.counts.data(), out.at.data(), a.out.type
#define RECEIVE_VC a.in.buffer, in.counts.data(), in.at.data(), a.in.type
#define BOTH_W                                                                                             \
  a.out.buffer, a.out.counts.data(), a.out.at.data(), a.out.types.data(), a.in.buffer, a.in.counts.data(), \
      a.in.at.data(), a.in.types.data()
#define BOTH_WC                                                                                                    \
  a.out.buffer, out.counts.data(), out.at.data(), a.out.types.data(), a.in.buffer, in.counts.data(), in.at.data(), \
      a.in.types.data()
#define REDUCED a.out.buffer, a.in.buffer, a.in.count, a.in.type, a.op

using Root = Collective::Root;
using InPlace = Collective::InPlace;
const Collective collectives[] = {
    {"Bcast", Blocks::none, Blocks::one, false, false, false, Root::sends, InPlace::no, true,
     RUN(Bcast, Ibcast, (RECEIVE, a.root, a.comm), (RECEIVE, a.root, a.comm))},
    {"Gather", Blocks::one, Blocks::each, false, false, false, Root::receives, InPlace::at_root, true,
     RUN(Gather, Igather, (SEND, RECEIVE, a.root, a.comm), (SEND, RECEIVE, a.root, a.comm))},
    {"Gatherv", Blocks::one, Blocks::each, true, false, false, Root::receives, InPlace::at_root, true,
     RUN(Gatherv, Igatherv, (SEND, RECEIVE_V, a.root, a.comm), (SEND, RECEIVE_VC, a.root, a.comm))},
    {"Scatter", Blocks::each, Blocks::one, false, false, false, Root::sends, InPlace::at_root, true,
     RUN(Scatter, Iscatter, (SEND, RECEIVE, a.root, a.comm), (SEND, RECEIVE, a.root, a.comm))},
    {"Scatterv", Blocks::each, Blocks::one, true, false, false, Root::sends, InPlace::at_root, true,
     RUN(Scatterv, Iscatterv, (SEND_V, RECEIVE, a.root, a.comm), (SEND_VC, RECEIVE, a.root, a.comm))},
    {"Allgather", Blocks::one, Blocks::each, false, false, false, Root::none, InPlace::everywhere, true,
     RUN(Allgather, Iallgather, (SEND, RECEIVE, a.comm), (SEND, RECEIVE, a.comm))},
    {"Allgatherv", Blocks::one, Blocks::each, true, false, false, Root::none, InPlace::everywhere, true,
     RUN(Allgatherv, Iallgatherv, (SEND, RECEIVE_V, a.comm), (SEND, RECEIVE_VC, a.comm))},
    {"Alltoall", Blocks::each, Blocks::each, false, false, false, Root::none, InPlace::everywhere, true,
     RUN(Alltoall, Ialltoall, (SEND, RECEIVE, a.comm), (SEND, RECEIVE, a.comm))},
    {"Alltoallv", Blocks::each, Blocks::each, true, false, false, Root::none, InPlace::everywhere, true,
     RUN(Alltoallv, Ialltoallv, (SEND_V, RECEIVE_V, a.comm), (SEND_VC, RECEIVE_VC, a.comm))},
    {"Alltoallw", Blocks::each, Blocks::each, true, true, false, Root::none, InPlace::everywhere, true,
     RUN(Alltoallw, Ialltoallw, (BOTH_W, a.comm), (BOTH_WC, a.comm))},
    {"Reduce", Blocks::one, Blocks::one, false, false, true, Root::receives, InPlace::at_root, true,
     RUN(Reduce, Ireduce, (REDUCED, a.root, a.comm), (REDUCED, a.root, a.comm))},
    {"Allreduce", Blocks::one, Blocks::one, false, false, true, Root::none, InPlace::everywhere, true,
     RUN(Allreduce, Iallreduce, (REDUCED, a.comm), (REDUCED, a.comm))},
    {"Reduce_scatter", Blocks::mine, Blocks::one, true, false, true, Root::none, InPlace::everywhere, false,
     RUN(Reduce_scatter, Ireduce_scatter, (a.out.buffer, a.in.buffer, a.in.counts.data(), a.in.type, a.op, a.comm),
         (a.out.buffer, a.in.buffer, in.counts.data(), a.in.type, a.op, a.comm))},
    {"Reduce_scatter_block", Blocks::mine, Blocks::one, false, false, true, Root::none, InPlace::everywhere, false,
     RUN(Reduce_scatter_block, Ireduce_scatter_block, (REDUCED, a.comm), (REDUCED, a.comm))},
    {"Scan", Blocks::one, Blocks::one, false, false, true, Root::none, InPlace::everywhere, false,
     RUN(Scan, Iscan, (REDUCED, a.comm), (REDUCED, a.comm))},
    {"Exscan", Blocks::one, Blocks::one, false, false, true, Root::none, InPlace::everywhere, false,
     RUN(Exscan, Iexscan, (REDUCED, a.comm), (REDUCED, a.comm))},
    {"Reduce_local", Blocks::one, Blocks::one, false, false, true, Root::none, InPlace::no, false,
     [](Form form, const Arguments& a, void (*)()) -> int {
       if (form == Form::library) return PMPI_Reduce_local(REDUCED);
       return form == Form::blocking ? MPI_Reduce_local(REDUCED) : MPI_Reduce_local_c(REDUCED);
     },
     true},
    {},
};

}  // namespace bestride::test
