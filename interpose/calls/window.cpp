// SPDX-License-Identifier: Apache-2.0
// Windows: counted while they exist (objects/window_count.hpp). MPI_Win_create gives an error for device memory that
// the MPI library can't access; a rank that gets this error does not make the call.
#include "interpose/calls/entry.hpp"
#include "interpose/device/buffer_location.hpp"
#include "interpose/device/transfer_choice.hpp"
#include "interpose/device/unsupported.hpp"
#include "interpose/mpi/nested_calls.hpp"
#include "interpose/objects/window_count.hpp"

namespace bestride::inline interpose {
namespace {

/// Makes the call that creates a window, and counts it.
template <Calls& via, class Function, class... Arguments>
int create(Function function, Arguments... arguments) {
  const bool counts = !nested<via>();
  const int error = inside(function, arguments...);
  if (counts && error == MPI_SUCCESS) window_count.fetch_add(1, std::memory_order_relaxed);
  return error;
}

template <Calls& via, auto slot, class Unit>
int win_create(void* base, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  if (gpu_runtime_detected() && !gpu_aware() && not_host_accessible(locate_buffer(base, std::int64_t{bytes})))
    return raise_device_error(comm, DeviceError::unsupported, "MPI_Win_create");
  return create<via>(via.*slot, base, bytes, unit, info, comm, window);
}

/// `memory`: void**.
template <Calls& via, auto slot, class Unit>
int win_allocate(MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, void* memory, MPI_Win* window) {
  return create<via>(via.*slot, bytes, unit, info, comm, memory, window);
}

template <Calls& via>
int win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  return create<via>(via.Win_create_dynamic, info, comm, window);
}

thread_local constinit const MPI_Win* window_being_freed __attribute__((tls_model("initial-exec"))) = nullptr;

template <Calls& via>
int win_free(MPI_Win* window) {
  if (!window || nested_free<via>(window_being_freed, window)) return via.Win_free(window);
  const ObjectBeingFreed freeing(window_being_freed, *window);
  const int error = via.Win_free(window);
  if (error == MPI_SUCCESS) window_count.fetch_sub(1, std::memory_order_relaxed);
  return error;
}

}  // namespace
}  // namespace bestride::inline interpose

#define BESTRIDE_WINDOW_ENTRY(name, body, parameters, arguments) \
  BESTRIDE_DEFINE_ENTRIES(name, BESTRIDE_WINDOW_ENTRY_OF, body, parameters, arguments)
#define BESTRIDE_WINDOW_ENTRY_OF(entry, calls, name, body, parameters, arguments)   \
  extern "C" int entry parameters {                                                 \
    ::bestride::before_call<::bestride::CallId::name>();                            \
    return ::bestride::body<::bestride::calls, &::bestride::Calls::name> arguments; \
  }
#define BESTRIDE_WINDOW_FORMS(suffix, Unit)                                                                       \
  BESTRIDE_WINDOW_ENTRY(Win_create##suffix, win_create,                                                           \
                        (void* base, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* window),   \
                        (base, bytes, unit, info, comm, window))                                                  \
  BESTRIDE_WINDOW_ENTRY(Win_allocate##suffix, win_allocate,                                                       \
                        (MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, void* memory, MPI_Win* window), \
                        (bytes, unit, info, comm, memory, window))                                                \
  BESTRIDE_WINDOW_ENTRY(Win_allocate_shared##suffix, win_allocate,                                                \
                        (MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, void* memory, MPI_Win* window), \
                        (bytes, unit, info, comm, memory, window))

BESTRIDE_WINDOW_FORMS(, int)
BESTRIDE_WINDOW_FORMS(_c, MPI_Aint)
BESTRIDE_PLAIN_ENTRY(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win* window), win_create_dynamic,
                     (info, comm, window))
BESTRIDE_PLAIN_ENTRY(Win_free, (MPI_Win * window), win_free, (window))
