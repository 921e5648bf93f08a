// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/communicators.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "interpose/collectives/job.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// The ranks of larger communicators are not translated: to find out whether they are evenly spaced, all of them would
/// have to be.
constexpr int most_members_read = 4096;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  a ^= b + 0x9E3779B97F4A7C15u + (a << 6) + (a >> 2);
  a = (a ^ (a >> 33)) * 0xFF51AFD7ED558CCDu;
  return a ^ (a >> 33);
}

constexpr std::uint64_t world_uid = 1;

/// The beginning of the name, if it is too long.
void copy_name(CommunicatorRecord& record, const char* name) noexcept {
  const std::size_t length = strnlen(name, sizeof record.name - 1);
  std::memcpy(record.name, name, length);
  record.name[length] = '\0';
}

CommunicatorKind kind_of(MPI_Comm comm) noexcept {
  int inter = 0;
  return real.Comm_test_inter(comm, &inter) == MPI_SUCCESS && inter ? CommunicatorKind::inter : CommunicatorKind::intra;
}

}  // namespace

CommunicatorTracker::Members CommunicatorTracker::members_of(MPI_Comm comm) noexcept {
  Members members;
  if (const CommEntry* const known = runtime().comms.find(comm); known && known->size() > 0) {
    members.size = known->size();
    members.rank = known->rank();
  } else {
    if (kind_of(comm) == CommunicatorKind::inter) return members;
    real.Comm_size(comm, &members.size);
    real.Comm_rank(comm, &members.rank);
  }
  MPI_Group group = MPI_GROUP_NULL;
  if (!world_exists_.load(std::memory_order_relaxed) || real.Comm_group(comm, &group) != MPI_SUCCESS) return members;
  const Job* const all = job();
  MPI_Group world = all ? all->world_group : MPI_GROUP_NULL;
  const bool own_group = world == MPI_GROUP_NULL;
  if (!own_group || real.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    const int count = members.size <= most_members_read ? members.size : 1;
    try {
      std::vector<int> ranks(static_cast<std::size_t>(count)), world_ranks(static_cast<std::size_t>(count));
      for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)] = i;
      if (real.Group_translate_ranks(group, count, ranks.data(), world, world_ranks.data()) == MPI_SUCCESS &&
          world_ranks[0] != MPI_UNDEFINED) {
        members.first = world_ranks[0];
        members.stride = members.size == 1 ? 1 : count == members.size ? world_ranks[1] - world_ranks[0] : 0;
        for (std::size_t i = 1; i < world_ranks.size(); ++i)
          if (world_ranks[i] - world_ranks[i - 1] != members.stride) members.stride = 0;
      }
    } catch (...) {
    }
    if (own_group) real.Group_free(&world);
  }
  real.Group_free(&group);
  return members;
}

CommunicatorTracker::Members CommunicatorTracker::members_of(const TrackedCommunicator& tracked) const noexcept {
  const CommunicatorRecord& record = file_.communicators[tracked.index];
  return {record.size.get(), record.rank.get(), record.first_member.get(), record.stride.get()};
}

TrackedCommunicator* CommunicatorTracker::reserve() noexcept {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t i = first_vacant_; i < max_communicators; ++i)
    if (all_[i].index == no_index) {
      first_vacant_ = i + 1;
      all_[i].index = i;
      all_[i].id = communicator_id(i, (file_.communicators[i].kind.get() >> 8) + 1);
      all_[i].uid = 0;
      all_[i].children.store(0, std::memory_order_relaxed);
      all_[i].collectives.store(0, std::memory_order_relaxed);
      file_.communicators[i].collectives.set(0);
      return &all_[i];
    }
  first_vacant_ = max_communicators;
  file_.header.communicators_dropped.add(1);
  return nullptr;
}

void CommunicatorTracker::describe(TrackedCommunicator& tracked, CommunicatorKind kind, std::uint64_t uid,
                                   std::uint64_t parent_uid, const Members& members, const char* name) noexcept {
  tracked.uid = uid;
  tracked.first_member = members.first;
  tracked.stride = members.stride;
  CommunicatorRecord& record = file_.communicators[tracked.index];
  record.parent_uid.set(parent_uid);
  record.size.set(members.size);
  record.rank.set(members.rank);
  record.first_member.set(members.first);
  record.stride.set(members.stride);
  copy_name(record, name);
  record.uid.set(uid);
  record.kind.atomic().store((tracked.id & ~0xffu) | static_cast<std::uint32_t>(kind), std::memory_order_release);
}

void CommunicatorTracker::set_kind(std::uint32_t index, std::uint32_t kind) noexcept {
  file_.communicators[index].kind.atomic().store((all_[index].id & ~0xffu) | kind, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_release);
}

void CommunicatorTracker::release(TrackedCommunicator* tracked) noexcept {
  if (!tracked) return;
  const std::lock_guard lock(mutex_);
  set_kind(tracked->index, (file_.communicators[tracked->index].kind.get() & 0xff) | freed_flag);
  std::uint32_t& oldest = freed_[next_freed_++ % max_freed];
  if (oldest != no_index) {
    set_kind(oldest, static_cast<std::uint32_t>(CommunicatorKind::free));
    all_[oldest].index = no_index;
    first_vacant_ = std::min(first_vacant_, oldest);
  }
  oldest = tracked->index;
}

void CommunicatorTracker::insert(std::uint64_t bits, TrackedCommunicator* tracked) noexcept {
  TrackedCommunicator* replaced = nullptr;
  const auto kind = static_cast<CommunicatorKind>(file_.communicators[tracked->index].kind.get() & 0xff);
  if (!table(kind).insert(bits, tracked, &replaced)) release(tracked);
  generation_.fetch_add(1, std::memory_order_relaxed);
  release(replaced);  // its end was not intercepted
}

void CommunicatorTracker::put_back(std::uint64_t bits, TrackedCommunicator* tracked) noexcept { insert(bits, tracked); }

void CommunicatorTracker::add_predefined(int rank, int size) noexcept {
  world_exists_.store(true, std::memory_order_relaxed);
  if (TrackedCommunicator* const world = reserve()) {
    describe(*world, CommunicatorKind::intra, world_uid, 0, {size, rank, 0, 1}, "MPI_COMM_WORLD");
    insert(bits_of(MPI_COMM_WORLD), world);
  }
  if (TrackedCommunicator* const self = reserve()) {
    describe(*self, CommunicatorKind::intra, mix(world_uid, static_cast<std::uint64_t>(rank) + 1), 0, {1, 0, rank, 1},
             "MPI_COMM_SELF");
    insert(bits_of(MPI_COMM_SELF), self);
  }
}

void CommunicatorTracker::add(MPI_Comm comm, TrackedCommunicator* parent) noexcept {
  if (!parent || parent->uid == 0) return add_unrelated(comm);
  const std::uint64_t child = parent->children.fetch_add(1, std::memory_order_relaxed) + 1;
  if (comm == MPI_COMM_NULL) return;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return;
  const CommEntry* const known = runtime().comms.find(comm);
  const bool intra = known && known->size() > 0;
  const Members members = intra && known->has_ranks_of_parent() ? members_of(*parent) : members_of(comm);
  const std::uint64_t uid =
      members.first < 0 ? 0 : mix(mix(parent->uid, child), static_cast<std::uint64_t>(members.first) + 2);
  describe(*tracked, intra ? CommunicatorKind::intra : kind_of(comm), uid, parent->uid, members, "");
  insert(bits_of(comm), tracked);
}

void CommunicatorTracker::add_unrelated(MPI_Comm comm) noexcept {
  if (comm == MPI_COMM_NULL) return;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return;
  describe(*tracked, kind_of(comm), 0, 0, members_of(comm), "");
  insert(bits_of(comm), tracked);
}

TrackedCommunicator* CommunicatorTracker::add_like(TrackedCommunicator* parent, CommunicatorKind kind,
                                                   const char* name) noexcept {
  if (!parent) return nullptr;
  const std::uint64_t child = parent->children.fetch_add(1, std::memory_order_relaxed) + 1;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return nullptr;
  describe(*tracked, kind, parent->uid ? mix(mix(parent->uid, child), 1) : 0, parent->uid, members_of(*parent), name);
  return tracked;
}

void CommunicatorTracker::add_window(MPI_Win window, TrackedCommunicator* parent) noexcept {
  if (TrackedCommunicator* const tracked = add_like(parent, CommunicatorKind::window, "window"))
    insert(bits_of(window), tracked);
}

void CommunicatorTracker::add_file(MPI_File file, TrackedCommunicator* parent) noexcept {
  if (TrackedCommunicator* const tracked = add_like(parent, CommunicatorKind::file, "file"))
    insert(bits_of(file), tracked);
}

void CommunicatorTracker::add_duplicate(MPI_Comm comm, TrackedCommunicator* parent) noexcept {
  if (!parent) return add_unrelated(comm);
  if (TrackedCommunicator* const tracked = add_like(parent, kind_in_record(*parent), ""))
    insert(bits_of(comm), tracked);
}

void CommunicatorTracker::begin_duplicate(TrackedCommunicator* parent, std::uint64_t request,
                                          const MPI_Comm* made) noexcept {
  TrackedCommunicator* tracked = nullptr;
  if (parent && !(tracked = add_like(parent, kind_in_record(*parent), ""))) return;
  {
    const std::lock_guard lock(mutex_);
    for (Duplicate& each : duplicate_)
      if (each.request == 0) {
        each = {request, made, tracked};
        duplicates_.fetch_add(1, std::memory_order_relaxed);
        return;
      }
  }
  release(tracked);
}

void CommunicatorTracker::find_duplicate(std::uint64_t request, bool good) noexcept {
  Duplicate found;
  {
    const std::lock_guard lock(mutex_);
    for (Duplicate& each : duplicate_)
      if (each.request == request && request != 0) {
        found = std::exchange(each, {});
        duplicates_.fetch_sub(1, std::memory_order_relaxed);
        break;
      }
  }
  if (!found.made) return;
  if (!good)
    release(found.tracked);
  else if (found.tracked)
    insert(bits_of(*found.made), found.tracked);
  else
    add_unrelated(*found.made);
}

void CommunicatorTracker::set_name(MPI_Comm comm, const char* name) noexcept {
  if (const TrackedCommunicator* const tracked = find(bits_of(comm), CommunicatorKind::intra))
    copy_name(file_.communicators[tracked->index], name);
}

}  // namespace bestride::inline interpose
