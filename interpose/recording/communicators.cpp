// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/communicators.hpp"

#include <algorithm>
#include <array>
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

CommunicatorTracker::WorldRanks CommunicatorTracker::world_ranks(MPI_Group group) noexcept try {
  WorldRanks result;
  if (!world_exists_.load(std::memory_order_relaxed)) return {{}, -1};
  if (real.Group_size(group, &result.size) != MPI_SUCCESS) return {};
  const Job* const all = job();
  MPI_Group world = all ? all->world_group : MPI_GROUP_NULL;
  const bool own_group = world == MPI_GROUP_NULL;
  if (own_group && real.Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return {{}, -1};
  const int count = result.size <= most_members_read ? result.size : 1;
  std::vector<int> ranks(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ranks[static_cast<std::size_t>(i)] = i;
  result.ranks.resize(ranks.size());
  if (real.Group_translate_ranks(group, count, ranks.data(), world, result.ranks.data()) != MPI_SUCCESS ||
      std::find(result.ranks.begin(), result.ranks.end(), MPI_UNDEFINED) != result.ranks.end())
    result.ranks.clear();
  if (own_group) real.Group_free(&world);
  return result;
} catch (...) {
  return {{}, -1};
}

namespace {

struct Spacing {
  int first = -1, stride = 0;
};
Spacing spacing_of(const CommunicatorTracker::WorldRanks& members) noexcept {
  const std::vector<int>& ranks = members.ranks;
  if (ranks.empty()) return {};
  Spacing spacing{ranks[0], members.size == 1 ? 1 : members.complete() ? ranks[1] - ranks[0] : 0};
  for (std::size_t i = 1; i < ranks.size(); ++i)
    if (ranks[i] - ranks[i - 1] != spacing.stride) spacing.stride = 0;
  return spacing;
}

}  // namespace

CommunicatorTracker::Members CommunicatorTracker::members_of(MPI_Comm comm) noexcept {
  Members members;
  bool inter = false;
  if (const CommEntry* const known = runtime().comms.find(comm); known && known->size() > 0) {
    members.size = known->size();
    members.rank = known->rank();
  } else {
    inter = kind_of(comm) == CommunicatorKind::inter;
    real.Comm_size(comm, &members.size);
    real.Comm_rank(comm, &members.rank);
  }
  if (inter) {
    find_remote(comm, members);
    return members;
  }
  MPI_Group group = MPI_GROUP_NULL;
  if (!world_exists_.load(std::memory_order_relaxed) || real.Comm_group(comm, &group) != MPI_SUCCESS) return members;
  const auto [first, stride] = spacing_of(world_ranks(group));
  members.first = first;
  members.stride = stride;
  real.Group_free(&group);
  return members;
}

/// The remote group of an intercommunicator, and the identity of both.
void CommunicatorTracker::find_remote(MPI_Comm comm, Members& members) noexcept {
  MPI_Group local = MPI_GROUP_NULL, remote = MPI_GROUP_NULL;
  members.local_size = members.size;
  members.size = 0;
  if (real.Comm_group(comm, &local) != MPI_SUCCESS) return;
  const WorldRanks own = world_ranks(local);
  real.Group_free(&local);
  if (real.Comm_remote_group(comm, &remote) != MPI_SUCCESS) return;
  const WorldRanks others = world_ranks(remote);
  real.Group_free(&remote);
  members.size = std::max(0, others.size);
  const auto [first, stride] = spacing_of(others);
  members.first = first;
  members.stride = stride;
  if (!own.complete() || !others.complete() || own.ranks.empty() || others.ranks.empty()) return;
  members.side = own.ranks[0] < first ? 0 : 1;
  std::uint64_t hash = 0;
  for (const WorldRanks* group : members.side == 0 ? std::array{&own, &others} : std::array{&others, &own}) {
    hash = mix(hash, static_cast<std::uint64_t>(group->size));
    for (const int rank : group->ranks) hash = mix(hash, static_cast<std::uint64_t>(rank));
  }
  members.identity = hash;
}

std::uint64_t CommunicatorTracker::inter_uid(const Members& members) noexcept try {
  if (members.identity == 0) return 0;
  const std::lock_guard lock(mutex_);
  auto known =
      std::find_if(inters_.begin(), inters_.end(), [&](const auto& entry) { return entry.first == members.identity; });
  if (known == inters_.end()) known = inters_.insert(known, {members.identity, 0});
  return mix(members.identity, ++known->second);
} catch (...) {
  return 0;
}

CommunicatorTracker::Members CommunicatorTracker::members_of(const TrackedCommunicator& tracked) const noexcept {
  const CommunicatorRecord& record = file_.communicators[tracked.index];
  return {record.size.get(),   record.rank.get(),       record.first_member.get(),
          record.stride.get(), record.local_size.get(), record.side.get()};
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
                                   std::uint64_t parent_uid, const Members& members, const char* name,
                                   std::uint32_t site) noexcept {
  tracked.uid = uid;
  tracked.first_member = members.first;
  tracked.stride = members.stride;
  CommunicatorRecord& record = file_.communicators[tracked.index];
  record.parent_uid.set(parent_uid);
  record.size.set(members.size);
  record.rank.set(members.rank);
  record.first_member.set(members.first);
  record.stride.set(members.stride);
  record.local_size.set(members.local_size);
  record.side.set(members.side);
  record.site.set(site);
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
    describe(*world, CommunicatorKind::intra, world_uid, 0, {size, rank, 0, 1}, "MPI_COMM_WORLD", no_index);
    insert(bits_of(MPI_COMM_WORLD), world);
  }
  if (TrackedCommunicator* const self = reserve()) {
    describe(*self, CommunicatorKind::intra, mix(world_uid, static_cast<std::uint64_t>(rank) + 1), 0, {1, 0, rank, 1},
             "MPI_COMM_SELF", no_index);
    insert(bits_of(MPI_COMM_SELF), self);
  }
}

void CommunicatorTracker::add(MPI_Comm comm, TrackedCommunicator* parent, std::uint32_t site) noexcept {
  if (!parent || parent->uid == 0) return add_unrelated(comm, site);
  const std::uint64_t child = parent->children.fetch_add(1, std::memory_order_relaxed) + 1;
  if (comm == MPI_COMM_NULL) return;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return;
  const CommEntry* const known = runtime().comms.find(comm);
  const bool intra = known && known->size() > 0;
  const bool like_parent = intra && known->has_ranks_of_parent() && kind_in_record(*parent) == CommunicatorKind::intra;
  const Members members = like_parent ? members_of(*parent) : members_of(comm);
  const CommunicatorKind kind = intra ? CommunicatorKind::intra : kind_of(comm);
  const std::uint64_t uid = kind == CommunicatorKind::inter ? inter_uid(members)
                            : members.first < 0
                                ? 0
                                : mix(mix(parent->uid, child), static_cast<std::uint64_t>(members.first) + 2);
  describe(*tracked, kind, uid, parent->uid, members, "", site);
  insert(bits_of(comm), tracked);
}

void CommunicatorTracker::add_unrelated(MPI_Comm comm, std::uint32_t site) noexcept {
  if (comm == MPI_COMM_NULL) return;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return;
  const Members members = members_of(comm);
  describe(*tracked, kind_of(comm), inter_uid(members), 0, members, "", site);
  insert(bits_of(comm), tracked);
}

TrackedCommunicator* CommunicatorTracker::add_like(TrackedCommunicator* parent, CommunicatorKind kind, const char* name,
                                                   std::uint32_t site) noexcept {
  if (!parent) return nullptr;
  const std::uint64_t child = parent->children.fetch_add(1, std::memory_order_relaxed) + 1;
  TrackedCommunicator* const tracked = reserve();
  if (!tracked) return nullptr;
  describe(*tracked, kind, parent->uid ? mix(mix(parent->uid, child), 1) : 0, parent->uid, members_of(*parent), name,
           site);
  return tracked;
}

void CommunicatorTracker::add_window(MPI_Win window, TrackedCommunicator* parent, std::uint32_t site) noexcept {
  if (TrackedCommunicator* const tracked = add_like(parent, CommunicatorKind::window, "", site))
    insert(bits_of(window), tracked);
}

void CommunicatorTracker::add_file(MPI_File file, TrackedCommunicator* parent, const char* path,
                                   std::uint32_t site) noexcept {
  const char* const slash = path ? std::strrchr(path, '/') : nullptr;
  const char* const name = slash ? slash + 1 : path ? path : "";
  if (TrackedCommunicator* const tracked = add_like(parent, CommunicatorKind::file, name, site))
    insert(bits_of(file), tracked);
}

void CommunicatorTracker::add_duplicate(MPI_Comm comm, TrackedCommunicator* parent, std::uint32_t site) noexcept {
  if (!parent) return add_unrelated(comm, site);
  if (TrackedCommunicator* const tracked = add_like(parent, kind_in_record(*parent), "", site))
    insert(bits_of(comm), tracked);
}

void CommunicatorTracker::begin_duplicate(TrackedCommunicator* parent, std::uint64_t request, const MPI_Comm* made,
                                          std::uint32_t site) noexcept {
  TrackedCommunicator* tracked = nullptr;
  if (parent && !(tracked = add_like(parent, kind_in_record(*parent), "", site))) return;
  {
    const std::lock_guard lock(mutex_);
    for (Duplicate& each : duplicate_)
      if (each.request == 0) {
        each = {request, made, tracked, site};
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
    add_unrelated(*found.made, found.site);
}

void CommunicatorTracker::set_name(std::uint64_t bits, CommunicatorKind kind, const char* name) noexcept {
  if (const TrackedCommunicator* const tracked = find(bits, kind)) copy_name(file_.communicators[tracked->index], name);
}

}  // namespace bestride::inline interpose
