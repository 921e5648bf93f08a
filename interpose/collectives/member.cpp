// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/member.hpp"

#include "interpose/collectives/communicator.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

CommMember::CommMember(MPI_Comm comm, bool may_wait) noexcept {
  if (comm == MPI_COMM_NULL) return;
  CommRegistry& known = runtime().comms;
  CommEntry* entry = known.find(comm);
  // The handle is invalid, or no member has intercepted the creation.
  if (!known.incomplete() && (!entry || !entry->made())) return;
  if (!entry) {
    known.add_valid(comm);
    entry = known.find(comm);
  }
  if (!entry) {
    entry = for_this_call_ = ::new (memory_) CommEntry(comm, runtime().locality(), runtime().peers(), true);
    collectives_of(*entry).remembered = false;
  }
  if (entry->size() < 2) return;
  entry_ = entry;
  if (may_wait && !collectives_of(*entry).agreed.load(std::memory_order_acquire)) agree_on_collectives(comm, *entry);
}

}  // namespace bestride::inline interpose
