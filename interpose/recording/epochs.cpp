// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/epochs.hpp"

#include <mutex>
#include <vector>

#include "interpose/recording/error_notes.hpp"

namespace bestride::inline interpose {

EpochRecord* EpochTracker::find(const TrackedCommunicator& window, int rank) noexcept {
  const std::uint64_t key = std::uint64_t{window.id} << 32 | (static_cast<std::uint32_t>(rank) + 1);
  EpochRecord* vacant = nullptr;
  for (unsigned i = 0; i < used_; ++i) {
    if (file_.epochs[i].key.get() == key) return &file_.epochs[i];
    if (!vacant && file_.epochs[i].key.get() == 0) vacant = &file_.epochs[i];
  }
  if (!vacant && used_ < max_epochs) vacant = &file_.epochs[used_++];
  if (!vacant) return nullptr;
  vacant->posts.set(0);
  vacant->starts.set(0);
  vacant->completes.set(0);
  vacant->key.atomic().store(key, std::memory_order_release);
  return vacant;
}

void EpochTracker::add(const TrackedCommunicator& window, MPI_Group group, Shared<std::uint32_t> EpochRecord::*counter,
                       int step) noexcept {
  const CommunicatorTracker::WorldRanks members = communicators_.world_ranks(group);
  const std::lock_guard lock(mutex_);
  for (const int rank : members.ranks)
    if (EpochRecord* const epoch = find(window, rank))
      (epoch->*counter).add(static_cast<std::uint32_t>(step));
    else
      file_.header.epochs_dropped.add(1);
  if (!members.complete()) file_.header.epochs_dropped.add(1);
}

void EpochTracker::begin_access(const TrackedCommunicator& window, MPI_Group group, int step) noexcept {
  if (group == MPI_GROUP_NULL) return;
  // The library's own call has not accepted the group yet.
  const QuietGroupErrors quiet;
  if (quiet)
    add(window, group, &EpochRecord::starts, step);
  else
    file_.header.epochs_dropped.add(1);
}

EpochTracker::Ended EpochTracker::end_access(const TrackedCommunicator& window) noexcept {
  const std::lock_guard lock(mutex_);
  Ended ended;
  for (unsigned i = 0; i < used_; ++i)
    if (EpochRecord& epoch = file_.epochs[i]; is_of(epoch, window) && epoch.completes.get() != epoch.starts.get()) {
      epoch.completes.set(epoch.starts.get());
      ended.set(i);
    }
  return ended;
}

void EpochTracker::take_back(const Ended& ended) noexcept {
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < used_; ++i)
    if (ended.test(i)) file_.epochs[i].completes.add(static_cast<std::uint32_t>(-1));
}

void EpochTracker::forget(const TrackedCommunicator& window) noexcept {
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; i < used_; ++i)
    if (is_of(file_.epochs[i], window)) file_.epochs[i].key.set(0);
}

}  // namespace bestride::inline interpose
