// SPDX-License-Identifier: Apache-2.0
// Communicators: creation, freeing, info hints.
//
// Every function that creates a communicator is intercepted by both names: the members agree on its collectives when it
// is created (interpose/collectives/member.hpp), and a member that did not intercept the creation would not take part.
// The collectives of a communicator that a tool creates in such a call, for itself, are left to the library.
#include "interpose/collectives/communicator.hpp"
#include "interpose/collectives/comm_parts.hpp"

#include "interpose/calls/entry.hpp"
#include "interpose/collectives/info_hints.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/mpi/argument_error.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// Makes a call that creates `*comm`, in which its members may wait for each other. `parent`, `ranks`: as for
/// ChildAgreement. `topology`: `*comm` has a virtual topology.
template <class Call>
int create(MPI_Comm parent, ChildRanks ranks, bool topology, const MPI_Comm* comm, Call call) {
  ChildAgreement agreement(parent, ranks);
  const int error = call();  // may throw, from an error handler or a callback for attributes
  if (error == MPI_SUCCESS || !is_argument_error(error)) agreement.count();
  if (error != MPI_SUCCESS || !comm || *comm == MPI_COMM_NULL) return error;
  CommEntry* const entry = agreement.made(*comm);
  if (topology && entry) make_early_neighbor_queue(*comm, *entry);
  return error;
}
/// By what the caller says about the order of the ranks; `if_not`: if they are not reordered.
constexpr ChildRanks ranks_of(int reorder, ChildRanks if_not) noexcept { return reorder ? ChildRanks::any : if_not; }

/// The entry is inaccessible during the call and is put back if the library fails.
template <class Call>
int free_with(MPI_Comm* comm, Call call) {
  const MPI_Comm freed = comm ? *comm : MPI_COMM_NULL;
  struct ExtractedEntry {
    MPI_Comm comm;
    CommEntry* entry;
    ~ExtractedEntry() {
      if (entry) runtime().comms.put_back(comm, entry);
    }
  } kept{freed, comm ? runtime().comms.extract(freed) : nullptr};
  const int error = call(comm);
  if (error == MPI_SUCCESS) delete std::exchange(kept.entry, nullptr);
  return error;
}

template <Calls& via>
int comm_free(MPI_Comm* comm) {
  return free_with(comm, via.Comm_free);
}
template <Calls& via>
int comm_disconnect(MPI_Comm* comm) {
  finish_freed_requests();  // MPI: all communication on it completes
  return free_with(comm, via.Comm_disconnect);
}

/// Registers a communicator when its request completes, with the hints from its info.
struct CommunicatorCompletion final : Completion {
  CommunicatorCompletion(MPI_Comm* of, const CommHints& given) noexcept : comm(of), hints(given) {}
  void fill() noexcept override {}
  void complete(bool good, const MPI_Status*) noexcept override {
    if (!good) return;
    runtime().comms.made(*comm);
    if (CommEntry* entry = runtime().comms.find(*comm)) collectives_of(*entry).hints = hints;
  }
  bool wants_status() const noexcept override { return false; }

  MPI_Comm* comm;  ///< the application's variable, which is valid until then
  const CommHints hints;
};

/// A member that has no memory for its hints has no hints. The members find this difference when they agree on
/// collectives.
int register_on_completion(int error, MPI_Comm* comm, const CommHints& hints, MPI_Request* request) noexcept {
  if (error != MPI_SUCCESS || !job()) return error;
  if (auto* completion =
          inject_failure(FailPoint::completion) ? nullptr : new (std::nothrow) CommunicatorCompletion(comm, hints))
    attach(completion, *request);
  else
    runtime().comms.mark_incomplete();
  return error;
}
template <Calls& via>
int comm_idup(MPI_Comm from, MPI_Comm* comm, MPI_Request* request) {
  return register_on_completion(via.Comm_idup(from, comm, request), comm, {}, request);
}
#ifdef BESTRIDE_DECLARES_Comm_idup_with_info
template <Calls& via>
int comm_idup_with_info(MPI_Comm from, MPI_Info info, MPI_Comm* comm, MPI_Request* request) {
  const int error = via.Comm_idup_with_info(from, info, comm, request);
  return register_on_completion(error, comm, error == MPI_SUCCESS ? read_hints(info) : CommHints{}, request);
}
#endif

template <Calls& via>
int comm_dup_with_info(MPI_Comm from, MPI_Info info, MPI_Comm* comm) {
  if (nested<via>()) return via.Comm_dup_with_info(from, info, comm);
  before_library_collective(from);
  const int error =
      create(from, ChildRanks::same, false, comm, [&] { return inside(via.Comm_dup_with_info, from, info, comm); });
  if (error == MPI_SUCCESS) apply_hints(*comm, info);
  return error;
}

template <Calls& via>
int comm_set_info(MPI_Comm comm, MPI_Info info) {
  if (nested<via>()) return via.Comm_set_info(comm, info);
  before_library_collective(comm);
  const int error = inside(via.Comm_set_info, comm, info);
  if (error == MPI_SUCCESS)
    apply_hints(comm, info);
  else if (runtime().comms.find(comm))
    apply_hints(comm, MPI_INFO_NULL);  // other members may rely on this member
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Comm_free, (MPI_Comm * comm), comm_free, (comm))
BESTRIDE_PLAIN_ENTRY(Comm_disconnect, (MPI_Comm * comm), comm_disconnect, (comm))
BESTRIDE_PLAIN_ENTRY(Comm_dup_with_info, (MPI_Comm from, MPI_Info info, MPI_Comm* comm), comm_dup_with_info,
                     (from, info, comm))
BESTRIDE_PLAIN_ENTRY(Comm_idup, (MPI_Comm from, MPI_Comm* comm, MPI_Request* request), comm_idup, (from, comm, request))
BESTRIDE_PLAIN_ENTRY(Comm_idup_with_info, (MPI_Comm from, MPI_Info info, MPI_Comm* comm, MPI_Request* request),
                     comm_idup_with_info, (from, info, comm, request))
BESTRIDE_PLAIN_ENTRY(Comm_set_info, (MPI_Comm comm, MPI_Info info), comm_set_info, (comm, info))

/// Defines a function that creates `*comm` and is called by all members of `from`. Pending collectives on `from`
/// complete first; otherwise members would wait for each other inside the library. `ranks`, `topology`: as for
/// create().
#define BESTRIDE_COMM_CREATE_BY_ALL(name, ranks, topology, parameters, arguments)                            \
  BESTRIDE_BY_MPI_NAME_##name(                                                                               \
  namespace bestride::comm_create {                                                                          \
  template <Calls& via>                                                                                      \
  int name parameters {                                                                                      \
    if (nested<via>()) return via.name arguments;                                                            \
    before_library_collective(from);                                                                         \
    return create(from, ranks, topology, comm, [&] { return inside(via.name, BESTRIDE_UNWRAP arguments); }); \
  }                                                                                                          \
  })                                                                                                          \
  BESTRIDE_PLAIN_ENTRY(name, parameters, comm_create::name, arguments)
/// Defines a function that creates `*comm` and that only some members of a communicator call, or members of several
/// communicators. Pending collectives may need ranks that don't make this call, so they are not completed first.
#define BESTRIDE_COMM_CREATE(name, parameters, arguments)                       \
  BESTRIDE_BY_MPI_NAME_##name(                                                  \
  namespace bestride::comm_create {                                             \
  template <Calls& via>                                                         \
  int name parameters {                                                         \
    if (nested<via>()) return via.name arguments;                               \
    return create(MPI_COMM_NULL, ChildRanks::any, false, comm,                  \
                  [&] { return inside(via.name, BESTRIDE_UNWRAP arguments); }); \
  }                                                                             \
  })                                                                             \
  BESTRIDE_PLAIN_ENTRY(name, parameters, comm_create::name, arguments)

BESTRIDE_COMM_CREATE_BY_ALL(Comm_dup, ChildRanks::same, false, (MPI_Comm from, MPI_Comm* comm), (from, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Comm_split, ChildRanks::any, false, (MPI_Comm from, int color, int key, MPI_Comm* comm),
                            (from, color, key, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Comm_split_type, ChildRanks::any, false,
                            (MPI_Comm from, int kind, int key, MPI_Info info, MPI_Comm* comm),
                            (from, kind, key, info, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Comm_create, ChildRanks::any, false, (MPI_Comm from, MPI_Group group, MPI_Comm* comm),
                            (from, group, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Cart_create, ranks_of(reorder, ChildRanks::in_order), true,
                            (MPI_Comm from, int dimensions, const int* sizes, const int* periods, int reorder,
                             MPI_Comm* comm),
                            (from, dimensions, sizes, periods, reorder, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Cart_sub, ChildRanks::any, true, (MPI_Comm from, const int* kept, MPI_Comm* comm),
                            (from, kept, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Graph_create, ranks_of(reorder, ChildRanks::in_order), true,
                            (MPI_Comm from, int nodes, const int* index, const int* edges, int reorder, MPI_Comm* comm),
                            (from, nodes, index, edges, reorder, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Dist_graph_create, ranks_of(reorder, ChildRanks::same), true,
                            (MPI_Comm from, int count, const int* sources, const int* degrees, const int* destinations,
                             const int* weights, MPI_Info info, int reorder, MPI_Comm* comm),
                            (from, count, sources, degrees, destinations, weights, info, reorder, comm))
BESTRIDE_COMM_CREATE_BY_ALL(Dist_graph_create_adjacent, ranks_of(reorder, ChildRanks::same), true,
                            (MPI_Comm from, int in, const int* sources, const int* in_weights, int out,
                             const int* destinations, const int* out_weights, MPI_Info info, int reorder,
                             MPI_Comm* comm),
                            (from, in, sources, in_weights, out, destinations, out_weights, info, reorder, comm))
BESTRIDE_COMM_CREATE(Intercomm_merge, (MPI_Comm from, int high, MPI_Comm* comm), (from, high, comm))
BESTRIDE_COMM_CREATE(Comm_create_group, (MPI_Comm from, MPI_Group group, int tag, MPI_Comm* comm),
                     (from, group, tag, comm))
BESTRIDE_COMM_CREATE(Intercomm_create,
                     (MPI_Comm from, int leader, MPI_Comm peers, int remote_leader, int tag, MPI_Comm* comm),
                     (from, leader, peers, remote_leader, tag, comm))
BESTRIDE_COMM_CREATE(Comm_accept, (const char* port, MPI_Info info, int root, MPI_Comm from, MPI_Comm* comm),
                     (port, info, root, from, comm))
BESTRIDE_COMM_CREATE(Comm_connect, (const char* port, MPI_Info info, int root, MPI_Comm from, MPI_Comm* comm),
                     (port, info, root, from, comm))
BESTRIDE_COMM_CREATE(Comm_join, (int descriptor, MPI_Comm* comm), (descriptor, comm))
BESTRIDE_COMM_CREATE(Comm_get_parent, (MPI_Comm * comm), (comm))
BESTRIDE_COMM_CREATE(Comm_spawn,
                     (const char* command, char** arguments, int most, MPI_Info info, int root, MPI_Comm from,
                      MPI_Comm* comm, int* codes),
                     (command, arguments, most, info, root, from, comm, codes))
BESTRIDE_COMM_CREATE(Comm_spawn_multiple,
                     (int count, char** commands, char*** arguments, const int* most, const MPI_Info* infos, int root,
                      MPI_Comm from, MPI_Comm* comm, int* codes),
                     (count, commands, arguments, most, infos, root, from, comm, codes))
BESTRIDE_COMM_CREATE(Comm_create_from_group,
                     (MPI_Group group, const char* tag, MPI_Info info, MPI_Errhandler handler, MPI_Comm* comm),
                     (group, tag, info, handler, comm))
BESTRIDE_COMM_CREATE(Intercomm_create_from_groups,
                     (MPI_Group local, int leader, MPI_Group remote, int remote_leader, const char* tag, MPI_Info info,
                      MPI_Errhandler handler, MPI_Comm* comm),
                     (local, leader, remote, remote_leader, tag, info, handler, comm))
