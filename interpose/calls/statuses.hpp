// SPDX-License-Identifier: Apache-2.0
#pragma once
// Statuses of Bestride's own, for calls with MPI_STATUSES_IGNORE if the completion of a receive has to know what
// arrived.
#include <mpi.h>

#include <cstdlib>

#include "interpose/mpi/fault_injection.hpp"

namespace bestride::inline interpose {

class OwnStatuses {
 public:
  OwnStatuses() = default;
  ~OwnStatuses() {
    if (all_ != few_) std::free(all_);
  }
  OwnStatuses(const OwnStatuses&) = delete;
  OwnStatuses& operator=(const OwnStatuses&) = delete;

  /// Memory for `count` statuses; nullptr if there is none.
  MPI_Status* make(int count) noexcept {
    if (inject_failure(FailPoint::statuses)) return nullptr;
    if (count > static_cast<int>(sizeof few_ / sizeof few_[0]))
      all_ = static_cast<MPI_Status*>(std::malloc(static_cast<std::size_t>(count) * sizeof(MPI_Status)));
    return all_;
  }

 private:
  MPI_Status few_[32];
  MPI_Status* all_ = few_;
};

/// The number of requests completed in one piece if there is no memory for the statuses of all of them.
inline constexpr int requests_per_piece = 16;

}  // namespace bestride::inline interpose
