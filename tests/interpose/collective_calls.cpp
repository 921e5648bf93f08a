// SPDX-License-Identifier: Apache-2.0
#include "tests/interpose/collective_calls.hpp"

#include "base/profiling_names.hpp"  // after mpi.h

namespace bestride::test {
namespace {

int complete(int error, MPI_Request* request) {
  if (after_the_call) after_the_call();
  return error != MPI_SUCCESS ? error : MPI_Wait(request, MPI_STATUS_IGNORE);
}

/// The arrays of a direction as the large-count types. They must live until the call completes.
struct Large {
  std::vector<MPI_Count> counts;
  std::vector<MPI_Aint> at;
  explicit Large(const Direction& from)
      : counts(from.counts.begin(), from.counts.end()), at(from.at.begin(), from.at.end()) {}
};

}  // namespace

void (*after_the_call)() = nullptr;

const char* name(Form form) {
  constexpr const char* names[] = {"library", "blocking", "nonblocking", "blocking_c", "nonblocking_c"};
  return names[static_cast<int>(form)];
}

#define LIST(...) __VA_ARGS__
// `arguments` and `large`: the arguments before the communicator, in parentheses.
#define RUN(Name, Iname, arguments, large)                                                                    \
  [](Form form, const Direction& out, const Direction& in, [[maybe_unused]] int root, MPI_Comm comm) -> int { \
    const Large out_c(out), in_c(in);                                                                         \
    MPI_Request request = MPI_REQUEST_NULL;                                                                   \
    switch (form) {                                                                                           \
      case Form::library: return PMPI_##Name(LIST arguments, comm);                                           \
      case Form::blocking: return MPI_##Name(LIST arguments, comm);                                           \
      case Form::nonblocking: return complete(MPI_##Iname(LIST arguments, comm, &request), &request);         \
      case Form::blocking_c: return MPI_##Name##_c(LIST large, comm);                                         \
      case Form::nonblocking_c: return complete(MPI_##Iname##_c(LIST large, comm, &request), &request);       \
    }                                                                                                         \
    return MPI_ERR_OTHER;                                                                                     \
  }
#define SEND out.buffer, out.count, out.type
#define RECEIVE in.buffer, in.count, in.type
#define SEND_V out.buffer, out.counts.data(), out.at.data(), out.type
#define RECEIVE_V in.buffer, in.counts.data(), in.at.data(), in.type
#define SEND_VC out.buffer, out_c.counts.data(), out_c.at.data(), out.type
#define RECEIVE_VC in.buffer, in_c.counts.data(), in_c.at.data(), in.type
#define BOTH_W                                                                                               \
  out.buffer, out.counts.data(), out.at.data(), out.types.data(), in.buffer, in.counts.data(), in.at.data(), \
      in.types.data()
#define BOTH_WC                                                                                                      \
  out.buffer, out_c.counts.data(), out_c.at.data(), out.types.data(), in.buffer, in_c.counts.data(), in_c.at.data(), \
      in.types.data()

const CollectiveCall collective_calls[9] = {
    {"Gather", false, true, false, false, true, RUN(Gather, Igather, (SEND, RECEIVE, root), (SEND, RECEIVE, root))},
    {"Gatherv", false, true, true, false, true,
     RUN(Gatherv, Igatherv, (SEND, RECEIVE_V, root), (SEND, RECEIVE_VC, root))},
    {"Scatter", true, false, false, false, true, RUN(Scatter, Iscatter, (SEND, RECEIVE, root), (SEND, RECEIVE, root))},
    {"Scatterv", true, false, true, false, true,
     RUN(Scatterv, Iscatterv, (SEND_V, RECEIVE, root), (SEND_VC, RECEIVE, root))},
    {"Allgather", false, true, false, false, false, RUN(Allgather, Iallgather, (SEND, RECEIVE), (SEND, RECEIVE))},
    {"Allgatherv", false, true, true, false, false,
     RUN(Allgatherv, Iallgatherv, (SEND, RECEIVE_V), (SEND, RECEIVE_VC))},
    {"Alltoall", true, true, false, false, false, RUN(Alltoall, Ialltoall, (SEND, RECEIVE), (SEND, RECEIVE))},
    {"Alltoallv", true, true, true, false, false,
     RUN(Alltoallv, Ialltoallv, (SEND_V, RECEIVE_V), (SEND_VC, RECEIVE_VC))},
    {"Alltoallw", true, true, false, true, false, RUN(Alltoallw, Ialltoallw, (BOTH_W), (BOTH_WC))},
};

}  // namespace bestride::test
