// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by the entries of interpose/mpi/lazily_intercepted.def.
#include "interpose/collectives/pending.hpp"
#include "interpose/device/deferred_sends.hpp"
#include "interpose/device/detection.hpp"
#include "interpose/device/lazy_interception.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

/// Call at the start of each entry: starts the deferred sends, because the preload library no longer does it for these
/// functions. Returns true if a buffer may be device memory.
[[gnu::always_inline]] inline bool start_lazy_interception() noexcept {
  progress_pending_collectives();
  if (!gpu_runtime_detected()) [[likely]]
    return false;
  start_deferred_sends();
  return true;
}

/// A LazyEntry. `body`: a template on the pointer in Calls. Its other arguments follow from the type of the MPI
/// function, so one body serves every form and size of a call, and the compiler rejects it for any other function.
#define BESTRIDE_LAZY_ENTRY(name, body)                                                                        \
  {{"MPI_" #name, reinterpret_cast<void*>(static_cast<decltype(Calls::name)>(&body<next, &Calls::name>)),      \
    reinterpret_cast<void**>(&next.name)},                                                                     \
   reinterpret_cast<void**>(&real.name)},                                                                      \
      {{"PMPI_" #name, reinterpret_cast<void*>(static_cast<decltype(Calls::name)>(&body<real, &Calls::name>)), \
        reinterpret_cast<void**>(&real.name)},                                                                 \
       reinterpret_cast<void**>(&real.name)},

}  // namespace bestride::inline interpose
