// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statuses of our own, where the application passed MPI_STATUSES_IGNORE and a receive is owed that has to know what arrived.
#include <mpi.h>

#include <cstdlib>

#include "interpose/back/fail.hpp"

namespace bestride {

class OwnStatuses {
 public:
  OwnStatuses() = default;
  ~OwnStatuses() {
    if (all_ != few_) std::free(all_);
  }
  OwnStatuses(const OwnStatuses&) = delete;
  OwnStatuses& operator=(const OwnStatuses&) = delete;

  /// Room for `count` statuses; nullptr if there is no memory.
  MPI_Status* make(int count) noexcept {
    if (fail_here(FailPoint::statuses)) return nullptr;
    if (count > static_cast<int>(sizeof few_ / sizeof few_[0]))
      all_ = static_cast<MPI_Status*>(std::malloc(static_cast<std::size_t>(count) * sizeof(MPI_Status)));
    return all_;
  }

 private:
  MPI_Status few_[32];
  MPI_Status* all_ = few_;
};

/// How many requests are completed together where there is no memory for the statuses of all.
inline constexpr int piece_of_requests = 16;

}  // namespace bestride
