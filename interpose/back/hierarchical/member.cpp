// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/member.hpp"

#include "interpose/back/runtime.hpp"

namespace bestride {

Member::Member(MPI_Comm comm, bool may_wait) noexcept {
  if (comm == MPI_COMM_NULL) return;
  CommRegistry& known = runtime().comms;
  known.note(comm);
  CommEntry* entry = known.find(comm);
  if (!entry) {
    entry = &for_this_call_.emplace(comm, runtime().locality());
    entry->collectives.remembered = false;
  }
  if (entry->size() < 2) return;
  entry_ = entry;
  if (may_wait) entry->collectives.agree(comm, *entry);
}

}  // namespace bestride
