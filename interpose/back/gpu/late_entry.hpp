// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the entries of late.def share.
#include "interpose/back/calls.hpp"
#include "interpose/back/gpu/late.hpp"
#include "interpose/back/gpu/play.hpp"
#include "interpose/back/gpu/posted.hpp"
#include "interpose/back/hierarchical/pending.hpp"

namespace bestride {

/// At the begin of each: starts what was posted, since the front no longer does that for them. True if a buffer may be device memory.
inline bool begin_late() noexcept {
  progress_pending_collectives();
  if (!gpu_in_play()) [[likely]] return false;
  start_posted();
  return true;
}

/// A LateEntry. `body`: a template on the pointer in Calls; its further arguments follow from the type of the MPI function, so that one
/// body serves every form and size of a call, and the compiler refuses it for any other.
#define BESTRIDE_LATE_ENTRY(name, body) \
  {{"MPI_" #name, reinterpret_cast<void*>(static_cast<decltype(Calls::name)>(&body<&Calls::name>)), reinterpret_cast<void**>(&next.name)}, \
   reinterpret_cast<void**>(&real.name)},

}  // namespace bestride
