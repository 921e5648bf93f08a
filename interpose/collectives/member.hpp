// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommMember: a communicator in a collective call, as this rank knows it.
//
// Members agree in their first blocking collective on a communicator, before any argument is examined. So all of them
// take part, whatever their arguments are. A rank that has no memory to store the communicator's entry uses a temporary
// entry for this call and reports that it can't agree. All members then leave the collective to the MPI library and try
// again at the next one.
#include <mpi.h>

#include <cstddef>

#include "interpose/collectives/comm_collectives.hpp"

namespace bestride::inline interpose {

class CommMember {
 public:
  /// `may_wait`: the call may wait for other members.
  CommMember(MPI_Comm comm, bool may_wait) noexcept;
  ~CommMember() {
    if (for_this_call_) [[unlikely]]
      for_this_call_->~CommEntry();
  }
  CommMember(const CommMember&) = delete;
  CommMember& operator=(const CommMember&) = delete;

  /// True if it is an intra-communicator of two ranks or more.
  explicit operator bool() const noexcept { return entry_ != nullptr; }
  CommEntry& operator*() const noexcept { return *entry_; }
  CommEntry* operator->() const noexcept { return entry_; }

 private:
  CommEntry* entry_ = nullptr;
  CommEntry* for_this_call_ = nullptr;  ///< in memory_
  alignas(CommEntry) std::byte memory_[sizeof(CommEntry) + sizeof(CommCollectives)];
};

}  // namespace bestride::inline interpose
