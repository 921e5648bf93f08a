// SPDX-License-Identifier: Apache-2.0
#pragma once
// EpochTracker: the record's counters of post, start, complete and wait on windows.
//
// MPI_Win_wait and MPI_Win_complete name no group, so the ranks for which they wait follow from the calls that began
// the epoch. Numbers of epochs are compared instead of states, because a rank may have posted for its next epoch while
// the other one is still in the last.
#include <mpi.h>

#include <bitset>
#include <cstdint>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/recording/communicators.hpp"
#include "telemetry/record/layout.hpp"

namespace bestride::inline interpose {

/// All functions: any thread. No function raises an MPI error.
class EpochTracker {
 public:
  EpochTracker(RecordFile& file, CommunicatorTracker& communicators) noexcept
      : file_(file), communicators_(communicators) {}

  /// MPI_Win_post has succeeded.
  void begin_exposure(const TrackedCommunicator& window, MPI_Group group) noexcept {
    add(window, group, &EpochRecord::posts, 1);
  }
  /// MPI_Win_start is called with this group, which may be invalid. `step` -1: it has failed.
  void begin_access(const TrackedCommunicator& window, MPI_Group group, int step) noexcept;
  using Ended = std::bitset<max_epochs>;
  /// MPI_Win_complete is called. Returns what take_back() needs if it fails.
  Ended end_access(const TrackedCommunicator& window) noexcept;
  void take_back(const Ended& ended) noexcept;
  /// The window is freed.
  void forget(const TrackedCommunicator& window) noexcept;

 private:
  void add(const TrackedCommunicator& window, MPI_Group group, Shared<std::uint32_t> EpochRecord::*counter,
           int step) noexcept;
  /// The caller holds the mutex. nullptr: no place.
  EpochRecord* find(const TrackedCommunicator& window, int rank) noexcept;
  static bool is_of(const EpochRecord& epoch, const TrackedCommunicator& window) noexcept {
    return epoch.key.get() != 0 && epoch.key.get() >> 32 == window.id;
  }

  RecordFile& file_;
  CommunicatorTracker& communicators_;
  BriefMutex mutex_;
  unsigned used_ = 0;  ///< no entry after them was used
};

}  // namespace bestride::inline interpose
