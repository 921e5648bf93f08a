// SPDX-License-Identifier: Apache-2.0
// Initialization and finalization: MPI_Init, MPI_Finalize, sessions.
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "interpose/calls/entry.hpp"
#include "interpose/collectives/progress_thread.hpp"
#include "interpose/collectives/rail_selection.hpp"
#include "interpose/device/detection.hpp"
#include "interpose/lifetime/lifetime.hpp"
#include "interpose/mpi/nested_calls.hpp"

namespace bestride::inline interpose {
namespace {

/// The thread level that the application is told if the library was asked for MPI_THREAD_MULTIPLE instead; -1: the
/// library's own answer.
constinit std::atomic<int> reported_thread_level{-1};

/// A tool may call PMPI_Init in its MPI_Init.
void before_init() noexcept {
  static constinit std::atomic<bool> done{false};
  if (done.exchange(true)) return;
  select_rail();
  Lifetime::announce(runtime());
}
void begin(const LibraryLoadScope& loads) noexcept {
  start_gpu_detection(loads);
  Lifetime::begin(runtime());
}

/// The thread level of MPI_Init in the MPICH family.
int default_level() noexcept {
  const char* text = std::getenv("MPIR_CVAR_DEFAULT_THREAD_LEVEL");
  const std::string_view name = text ? text : "";
  return name == "MPI_THREAD_MULTIPLE"     ? MPI_THREAD_MULTIPLE
         : name == "MPI_THREAD_SERIALIZED" ? MPI_THREAD_SERIALIZED
         : name == "MPI_THREAD_FUNNELED"   ? MPI_THREAD_FUNNELED
                                           : MPI_THREAD_SINGLE;
}

/// True if both functions come from one shared object. Then no tool misses MPI_Init if MPI_Init_thread is called
/// instead.
bool from_one_object(const Calls& via) noexcept {
  Dl_info one, other;
  return dladdr(reinterpret_cast<void*>(via.Init), &one) && dladdr(reinterpret_cast<void*>(via.Init_thread), &other) &&
         one.dli_fbase == other.dli_fbase;
}

template <Calls& via>
int init_with(int* argc, char*** argv, int required, int* provided) {
  const LibraryLoadScope loads;
  const bool more = wants_thread_multiple() && required >= MPI_THREAD_SINGLE && required < MPI_THREAD_MULTIPLE;
  int granted = required;
  const int error = via.Init_thread(argc, argv, more ? MPI_THREAD_MULTIPLE : required, &granted);
  if (error != MPI_SUCCESS) return error;
  if (more && granted > required) reported_thread_level.store(granted = required, std::memory_order_relaxed);
  if (provided) *provided = granted;
  begin(loads);
  return error;
}

template <Calls& via>
int init(int* argc, char*** argv) {
  before_init();
  if (wants_thread_multiple() && from_one_object(via)) return init_with<via>(argc, argv, default_level(), nullptr);
  const LibraryLoadScope loads;
  const int error = via.Init(argc, argv);
  if (error == MPI_SUCCESS) begin(loads);
  return error;
}

template <Calls& via>
int init_thread(int* argc, char*** argv, int required, int* provided) {
  before_init();
  return init_with<via>(argc, argv, required, provided);
}

template <Calls& via>
int query_thread(int* provided) {
  const int error = via.Query_thread(provided);
  if (const int told = reported_thread_level.load(std::memory_order_relaxed); error == MPI_SUCCESS && told >= 0)
    *provided = told;
  return error;
}

template <Calls& via>
int finalize() {
  Lifetime::finalizing(runtime());
  return via.Finalize();
}

#ifdef BESTRIDE_DECLARES_Session_init
template <Calls& via>
int session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
  select_rail();
  const LibraryLoadScope loads;
  const bool counts = !nested<via>();
  const int error = inside(via.Session_init, info, handler, session);
  if (counts && error == MPI_SUCCESS) {
    start_gpu_detection(loads);
    Lifetime::session_begins(runtime());
  }
  return error;
}

thread_local constinit const MPI_Session* session_being_freed __attribute__((tls_model("initial-exec"))) = nullptr;

template <Calls& via>
int session_finalize(MPI_Session* session) {
  if (!session || nested_free<via>(session_being_freed, session)) return via.Session_finalize(session);
  const ObjectBeingFreed freeing(session_being_freed, *session);
  Lifetime::session_ends(runtime());
  const int error = via.Session_finalize(session);
  if (error != MPI_SUCCESS) Lifetime::session_begins(runtime());
  return error;
}
#endif

}  // namespace
}  // namespace bestride::inline interpose

BESTRIDE_PLAIN_ENTRY(Init, (int* argc, char*** argv), init, (argc, argv))
BESTRIDE_PLAIN_ENTRY(Init_thread, (int* argc, char*** argv, int required, int* provided), init_thread,
                     (argc, argv, required, provided))
BESTRIDE_PLAIN_ENTRY(Query_thread, (int* provided), query_thread, (provided))
BESTRIDE_PLAIN_ENTRY(Finalize, (), finalize, ())
BESTRIDE_PLAIN_ENTRY(Session_init, (MPI_Info info, MPI_Errhandler handler, MPI_Session* session), session_init,
                     (info, handler, session))
BESTRIDE_PLAIN_ENTRY(Session_finalize, (MPI_Session * session), session_finalize, (session))
