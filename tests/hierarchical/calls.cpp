// SPDX-License-Identifier: Apache-2.0
#include "tests/hierarchical/calls.hpp"

#include <utility>

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::test {

const char* name(What what) {
  constexpr const char* names[] = {"allgather", "allgatherv", "broadcast",      "gather",
                                   "gatherv",   "scatter",    "scatterv",       "alltoall",
                                   "alltoallv", "alltoallw",  "reduce_scatter", "reduce_scatter_block",
                                   "allreduce", "reduce"};
  return names[static_cast<int>(what)];
}

std::string name(Form form) {
  constexpr const char* waits[] = {"blocking", "nonblocking", "persistent"};
  return std::string(waits[static_cast<int>(form.wait)]) + (form.large ? "_c" : "") +
         (form.library ? " of the library" : "");
}

void Arguments::give_counts(std::vector<int> given, std::vector<int> places) {
  counts = std::move(given);
  at = std::move(places);
  large_counts.assign(counts.begin(), counts.end());
  large_at.assign(at.begin(), at.end());
}

void Arguments::give_out_counts(std::vector<int> given, std::vector<int> places) {
  out_counts = std::move(given);
  out_at = std::move(places);
  large_out_counts.assign(out_counts.begin(), out_counts.end());
  large_out_at.assign(out_at.begin(), out_at.end());
}

// `arguments` and `large_ones`: the arguments before the communicator, in parentheses.
#define LIST(...) __VA_ARGS__
#define FORMS(prefix, Name, Iname, arguments, large_ones)                                                   \
  switch (form.wait) {                                                                                      \
    case Wait::in_call:                                                                                     \
      return form.large ? prefix##Name##_c(LIST large_ones, a.comm) : prefix##Name(LIST arguments, a.comm); \
    case Wait::nonblocking:                                                                                 \
      return form.large ? prefix##Iname##_c(LIST large_ones, a.comm, request)                               \
                        : prefix##Iname(LIST arguments, a.comm, request);                                   \
    case Wait::persistent:                                                                                  \
      return form.large ? prefix##Name##_init_c(LIST large_ones, a.comm, MPI_INFO_NULL, request)            \
                        : prefix##Name##_init(LIST arguments, a.comm, MPI_INFO_NULL, request);              \
  }                                                                                                         \
  return MPI_ERR_OTHER;
#define RUN(Name, Iname, arguments, large_ones)      \
  if (form.library) {                                \
    FORMS(PMPI_, Name, Iname, arguments, large_ones) \
  } else {                                           \
    FORMS(MPI_, Name, Iname, arguments, large_ones)  \
  }
#define OUT a.out, static_cast<int>(a.out_count), a.out_type
#define IN a.in, static_cast<int>(a.in_count), a.in_type
#define OUT_C a.out, a.out_count, a.out_type
#define IN_C a.in, a.in_count, a.in_type
#define IN_V a.in, a.counts.data(), a.at.data(), a.in_type
#define IN_VC a.in, a.large_counts.data(), a.large_at.data(), a.in_type

int call(What what, Form form, const Arguments& a, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  switch (what) {
    case What::allgather: RUN(Allgather, Iallgather, (OUT, IN), (OUT_C, IN_C))
    case What::allgatherv: RUN(Allgatherv, Iallgatherv, (OUT, IN_V), (OUT_C, IN_VC))
    case What::broadcast: RUN(Bcast, Ibcast, (IN, a.root), (IN_C, a.root))
    case What::gather: RUN(Gather, Igather, (OUT, IN, a.root), (OUT_C, IN_C, a.root))
    case What::gatherv: RUN(Gatherv, Igatherv, (OUT, IN_V, a.root), (OUT_C, IN_VC, a.root))
    case What::scatter: RUN(Scatter, Iscatter, (OUT, IN, a.root), (OUT_C, IN_C, a.root))
    case What::scatterv:
      RUN(Scatterv, Iscatterv, (a.out, a.counts.data(), a.at.data(), a.out_type, IN, a.root),
          (a.out, a.large_counts.data(), a.large_at.data(), a.out_type, IN_C, a.root))
    case What::alltoall: RUN(Alltoall, Ialltoall, (OUT, IN), (OUT_C, IN_C))
    case What::alltoallv:
      RUN(Alltoallv, Ialltoallv, (a.out, a.out_counts.data(), a.out_at.data(), a.out_type, IN_V),
          (a.out, a.large_out_counts.data(), a.large_out_at.data(), a.out_type, IN_VC))
    case What::alltoallw:
      RUN(Alltoallw, Ialltoallw,
          (a.out, a.out_counts.data(), a.out_at.data(), a.out_types.data(), a.in, a.counts.data(), a.at.data(),
           a.in_types.data()),
          (a.out, a.large_out_counts.data(), a.large_out_at.data(), a.out_types.data(), a.in, a.large_counts.data(),
           a.large_at.data(), a.in_types.data()))
    case What::reduce_scatter:
      RUN(Reduce_scatter, Ireduce_scatter, (a.out, a.in, a.counts.data(), a.in_type, a.op),
          (a.out, a.in, a.large_counts.data(), a.in_type, a.op))
    case What::reduce_scatter_block:
      RUN(Reduce_scatter_block, Ireduce_scatter_block, (a.out, IN, a.op), (a.out, IN_C, a.op))
    case What::allreduce: RUN(Allreduce, Iallreduce, (a.out, IN, a.op), (a.out, IN_C, a.op))
    case What::reduce: RUN(Reduce, Ireduce, (a.out, IN, a.op, a.root), (a.out, IN_C, a.op, a.root))
  }
  return MPI_ERR_OTHER;
}

int complete(What what, Form form, const Arguments& arguments) {
  MPI_Request request;
  int error = call(what, form, arguments, &request);
  if (error != MPI_SUCCESS || form.wait == Wait::in_call) return error;
  if (form.wait == Wait::persistent) error = MPI_Start(&request);
  if (error == MPI_SUCCESS) error = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (form.wait == Wait::persistent) MPI_Request_free(&request);
  return error;
}

}  // namespace bestride::test
