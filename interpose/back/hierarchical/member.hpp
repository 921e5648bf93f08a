// SPDX-License-Identifier: Apache-2.0
#pragma once
// Member: a communicator at a collective call, as this rank knows it.
//
// Members agree in their first blocking collective on a communicator, before anything else is looked at, so that whatever one of them
// makes of its arguments, all of them do agree. A rank without memory to remember the communicator knows it for the length of the call: it
// takes part, says that it can't, and all leave the collective to the MPI library, and ask again at the next one.
#include <mpi.h>

#include <optional>

#include "interpose/back/communicators.hpp"

namespace bestride {

class Member {
 public:
  /// `may_wait`: the call may wait for other members.
  Member(MPI_Comm comm, bool may_wait) noexcept;

  /// It is an intra-communicator of two ranks or more.
  explicit operator bool() const noexcept { return entry_ != nullptr; }
  CommEntry& operator*() const noexcept { return *entry_; }
  CommEntry* operator->() const noexcept { return entry_; }

 private:
  CommEntry* entry_ = nullptr;
  std::optional<CommEntry> for_this_call_;
};

}  // namespace bestride
