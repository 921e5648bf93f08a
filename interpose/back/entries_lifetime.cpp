// SPDX-License-Identifier: Apache-2.0
// Birth and death: of the job, of types, of communicators.
#include "interpose/back/entries.hpp"
#include "interpose/back/gpu/play.hpp"
#include "interpose/back/hierarchical/hints.hpp"
#include "interpose/back/hierarchical/job.hpp"
#include "interpose/back/hierarchical/member.hpp"
#include "interpose/back/hierarchical/progress_thread.hpp"
#include "interpose/back/hierarchical/rail.hpp"
#include "interpose/back/owed.hpp"
#include "interpose/back/runtime.hpp"

namespace bestride {
namespace {

void begin(const LoadsOfOneCall& loads) noexcept {
  look_from_now_on(loads);
  runtime().begin();
}

template <Calls& via>
int init(int* argc, char*** argv) {
  take_a_rail();
  const LoadsOfOneCall loads;
  int provided = MPI_THREAD_SINGLE;
  const int error = wants_progress_thread() ? via.Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided) : via.Init(argc, argv);
  if (error == MPI_SUCCESS) begin(loads);
  return error;
}

template <Calls& via>
int init_thread(int* argc, char*** argv, int required, int* provided) {
  take_a_rail();
  const LoadsOfOneCall loads;
  const int error = via.Init_thread(argc, argv, wants_progress_thread() ? MPI_THREAD_MULTIPLE : required, provided);
  if (error == MPI_SUCCESS) begin(loads);
  return error;
}

template <Calls& via>
int finalize() {
  runtime().end();
  return via.Finalize();
}

#if MPI_VERSION >= 4
template <Calls& via>
int session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  take_a_rail();
  const LoadsOfOneCall loads;
  const int error = via.Session_init(info, handler, session);
  if (error == MPI_SUCCESS) {
    look_from_now_on(loads);
    runtime().session_begins();
  }
  return error;
}

template <Calls& via>
int session_finalize(MPI_Session* session) {
  runtime().session_ends();
  const int error = via.Session_finalize(session);
  if (error != MPI_SUCCESS) runtime().session_begins();
  return error;
}
#endif

template <Calls& via>
int type_commit(MPI_Datatype* type) {
  const int error = via.Type_commit(type);
  if (error == MPI_SUCCESS && !runtime().ended()) runtime().types.insert(*type);
  return error;
}

/// The copy of a committed type is committed.
template <Calls& via>
int type_dup(MPI_Datatype type, MPI_Datatype* copy) {
  const int error = via.Type_dup(type, copy);
  if (error == MPI_SUCCESS && runtime().types.find(type)) runtime().types.insert(*copy);
  return error;
}

/// Forgotten before the library frees it: afterwards another thread may already own the handle.
template <Calls& via>
int type_free(MPI_Datatype* type) {
  if (type) runtime().types.remove(*type);
  return via.Type_free(type);
}

template <Calls& via>
int comm_free(MPI_Comm* comm) {
  if (comm) runtime().comms.remove(*comm);
  return via.Comm_free(comm);
}

template <Calls& via>
int comm_disconnect(MPI_Comm* comm) {
  if (comm) runtime().comms.remove(*comm);
  return via.Comm_disconnect(comm);
}

/// After a call that made `comm`.
int made(int error, const MPI_Comm* comm) noexcept {
  if (error != MPI_SUCCESS || !comm || *comm == MPI_COMM_NULL) return error;
  runtime().comms.made(*comm);
  if (job()) [[unlikely]] {
    const Member member(*comm, true);
  }
  return error;
}

template <Calls& via>
int comm_dup_with_info(MPI_Comm from, MPI_Info info, MPI_Comm* comm) {
  const int error = made(via.Comm_dup_with_info(from, info, comm), comm);
  if (error == MPI_SUCCESS) take_hints(*comm, info);
  return error;
}

#if MPI_VERSION >= 4
/// What the info of MPI_Comm_idup_with_info says: it is the communicator's once that exists.
struct OwedHints final : Owed {
  OwedHints(MPI_Comm* of, const CommHints& given) noexcept : comm(of), hints(given) {}
  void fill() noexcept override {}
  void settle(bool good, const MPI_Status*) noexcept override {
    if (!good) return;
    runtime().comms.made(*comm);
    if (CommEntry* entry = runtime().comms.find(*comm)) entry->collectives.hints = hints;
  }
  bool wants_status() const noexcept override { return false; }

  MPI_Comm* comm;  ///< the application's, which stays until then
  const CommHints hints;
};

/// A member without memory for its hints has none, and so the members differ where they come to agree.
template <Calls& via>
int comm_idup_with_info(MPI_Comm from, MPI_Info info, MPI_Comm* comm, MPI_Request* request) {
  const int error = via.Comm_idup_with_info(from, info, comm, request);
  if (error == MPI_SUCCESS && job())
    if (auto* owed = fail_here(FailPoint::owed) ? nullptr : new (std::nothrow) OwedHints(comm, read_hints(info))) hang(owed, *request);
  return error;
}
#endif

template <Calls& via>
int comm_set_info(MPI_Comm comm, MPI_Info info) {
  const int error = via.Comm_set_info(comm, info);
  if (error == MPI_SUCCESS)
    take_hints(comm, info);
  else if (runtime().comms.find(comm))
    take_hints(comm, MPI_INFO_NULL);  // others may count on this member
  return error;
}

}  // namespace
}  // namespace bestride

BESTRIDE_BOTH_ENTRIES(Init, (int* argc, char*** argv), init, (argc, argv))
BESTRIDE_BOTH_ENTRIES(Init_thread, (int* argc, char*** argv, int required, int* provided), init_thread,
                      (argc, argv, required, provided))
BESTRIDE_BOTH_ENTRIES(Finalize, (), finalize, ())
#if MPI_VERSION >= 4
BESTRIDE_BOTH_ENTRIES(Session_init, (MPI_Info info, MPI_Errhandler handler, MPI_Session* session), session_init,
                      (info, handler, session))
BESTRIDE_BOTH_ENTRIES(Session_finalize, (MPI_Session* session), session_finalize, (session))
#endif
BESTRIDE_BOTH_ENTRIES(Type_commit, (MPI_Datatype* type), type_commit, (type))
BESTRIDE_BOTH_ENTRIES(Type_dup, (MPI_Datatype type, MPI_Datatype* copy), type_dup, (type, copy))
BESTRIDE_BOTH_ENTRIES(Type_free, (MPI_Datatype* type), type_free, (type))
BESTRIDE_BOTH_ENTRIES(Comm_free, (MPI_Comm* comm), comm_free, (comm))
BESTRIDE_BOTH_ENTRIES(Comm_disconnect, (MPI_Comm* comm), comm_disconnect, (comm))

BESTRIDE_BOTH_ENTRIES(Comm_dup_with_info, (MPI_Comm from, MPI_Info info, MPI_Comm* comm), comm_dup_with_info, (from, info, comm))
#if MPI_VERSION >= 4
BESTRIDE_BOTH_ENTRIES(Comm_idup_with_info, (MPI_Comm from, MPI_Info info, MPI_Comm* comm, MPI_Request* request), comm_idup_with_info,
                      (from, info, comm, request))
#endif
BESTRIDE_BOTH_ENTRIES(Comm_set_info, (MPI_Comm comm, MPI_Info info), comm_set_info, (comm, info))

using bestride::before_call;
using bestride::before_library_collective;
using bestride::CallId;
using bestride::made;
using bestride::next;

extern "C" int bestride_entry_Comm_dup(MPI_Comm from, MPI_Comm* comm) {
  before_call<CallId::Comm_dup>();
  before_library_collective(from);
  return made(next.Comm_dup(from, comm), comm);
}
extern "C" int bestride_entry_Comm_split(MPI_Comm from, int color, int key, MPI_Comm* comm) {
  before_call<CallId::Comm_split>();
  before_library_collective(from);
  return made(next.Comm_split(from, color, key, comm), comm);
}
extern "C" int bestride_entry_Cart_create(MPI_Comm from, int dimensions, const int* sizes, const int* periods, int reorder,
                                          MPI_Comm* comm) {
  before_call<CallId::Cart_create>();
  before_library_collective(from);
  return made(next.Cart_create(from, dimensions, sizes, periods, reorder, comm), comm);
}
extern "C" int bestride_entry_Cart_sub(MPI_Comm from, const int* kept, MPI_Comm* comm) {
  before_call<CallId::Cart_sub>();
  before_library_collective(from);
  return made(next.Cart_sub(from, kept, comm), comm);
}
extern "C" int bestride_entry_Graph_create(MPI_Comm from, int nodes, const int* index, const int* edges, int reorder,
                                           MPI_Comm* comm) {
  before_call<CallId::Graph_create>();
  before_library_collective(from);
  return made(next.Graph_create(from, nodes, index, edges, reorder, comm), comm);
}
extern "C" int bestride_entry_Dist_graph_create(MPI_Comm from, int count, const int* sources, const int* degrees,
                                                const int* destinations, const int* weights, MPI_Info info, int reorder,
                                                MPI_Comm* comm) {
  before_call<CallId::Dist_graph_create>();
  before_library_collective(from);
  return made(next.Dist_graph_create(from, count, sources, degrees, destinations, weights, info, reorder, comm), comm);
}
extern "C" int bestride_entry_Dist_graph_create_adjacent(MPI_Comm from, int in, const int* sources, const int* in_weights, int out,
                                                         const int* destinations, const int* out_weights, MPI_Info info,
                                                         int reorder, MPI_Comm* comm) {
  before_call<CallId::Dist_graph_create_adjacent>();
  before_library_collective(from);
  return made(next.Dist_graph_create_adjacent(from, in, sources, in_weights, out, destinations, out_weights, info, reorder, comm),
              comm);
}
