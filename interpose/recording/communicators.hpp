// SPDX-License-Identifier: Apache-2.0
#pragma once
// CommunicatorTracker: the communicators, windows and files of the record file, by handle.
//
// A reader of the members' separate files must recognize which ranks are members of one communicator. So each
// communicator has a uid, which each member computes without a message from the parent's uid, the number of
// communicators that the parent's members have created together before, and the rank in MPI_COMM_WORLD of its first
// member, which distinguishes the parts of a split. That of an intercommunicator follows from the ranks of its two
// groups and the number of those that the same groups have created before. The uid is 0 if this is not possible: for
// communicators with spawned processes, and for those made from a group without a parent.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/mpi/handle_bits.hpp"
#include "interpose/mpi/handle_table.hpp"
#include "telemetry/record/layout.hpp"
#include "telemetry/record/peers.hpp"
#include "telemetry/record/reduction.hpp"

namespace bestride::inline interpose {

/// What is known of a communicator, window or file in private memory.
struct TrackedCommunicator {
  std::uint32_t index = no_index;  ///< in RecordFile::communicators
  std::uint32_t id = no_index;     ///< communicator_id()
  std::uint64_t uid = 0;
  std::atomic<std::uint32_t> children{0};     ///< created by all members together
  std::atomic<std::uint64_t> collectives{0};  ///< as CommunicatorRecord
  std::atomic<std::uint64_t> before{0};       ///< the same before the last call
  std::int32_t first_member = -1;             ///< as CommunicatorRecord
  std::int32_t stride = 0;

  /// The key of a member's record (telemetry/record/peers.hpp).
  std::uint64_t peer_key(std::int32_t rank) const noexcept {
    return PeerTable::key_of(index, first_member, stride, rank);
  }

  /// Counts a collective call that begins and returns its number, from 1. MPI allows one thread at a time.
  std::uint32_t next_ordinal(RecordFile& file) noexcept {
    return next_ordinal(file, [](std::uint32_t hash) { return hash; });
  }
  /// Counts a reduction, returns its number, and adds its arguments to the hash of the communicator's reductions
  /// (add_to_hash()).
  std::uint32_t next_ordinal(RecordFile& file, std::uint16_t code, std::int32_t root, std::uint64_t bytes) noexcept {
    return next_ordinal(file, [=](std::uint32_t hash) { return add_to_hash(hash, code, root, bytes); });
  }
  /// Undoes the last next_ordinal(): the call failed before it communicated.
  void take_ordinal_back(RecordFile& file) noexcept { set(file, before.load(std::memory_order_relaxed)); }

 private:
  template <class Hash>
  std::uint32_t next_ordinal(RecordFile& file, Hash next_hash) noexcept {
    const std::uint64_t last = collectives.load(std::memory_order_relaxed);
    const std::uint32_t ordinal = static_cast<std::uint32_t>(last) + 1;
    before.store(last, std::memory_order_relaxed);
    set(file, std::uint64_t{next_hash(static_cast<std::uint32_t>(last >> 32))} << 32 | ordinal);
    return ordinal;
  }
  void set(RecordFile& file, std::uint64_t value) noexcept {
    collectives.store(value, std::memory_order_relaxed);
    file.communicators[index].collectives.set(value);
  }
};

/// All functions: any thread. No function raises an MPI error.
class CommunicatorTracker {
 public:
  explicit CommunicatorTracker(RecordFile& file) noexcept : file_(file) {
    for (std::uint32_t& index : freed_) index = no_index;
  }

  /// `bits`: of the handle. `kind`: intra for every communicator, window or file. nullptr: not known.
  TrackedCommunicator* find(std::uint64_t bits, CommunicatorKind kind) const noexcept { return table(kind).find(bits); }

  /// Changes whenever a handle gets or loses its entry: what find() has returned before may be wrong then.
  std::uint32_t generation() const noexcept { return generation_.load(std::memory_order_relaxed); }

  /// Adds MPI_COMM_WORLD and MPI_COMM_SELF. Called after MPI_Init.
  void add_predefined(int rank, int size) noexcept;
  /// MPI_Finalize begins: MPI_COMM_WORLD must not be used any more.
  void end_world() noexcept { world_exists_.store(false, std::memory_order_relaxed); }
  // `site`: where, or no_index.
  /// All members of `parent` (nullptr: not known) have created `comm`.
  void add(MPI_Comm comm, TrackedCommunicator* parent, std::uint32_t site) noexcept;
  /// All members of `parent` have created `comm`, which has the same members, so that they need not be asked for.
  void add_duplicate(MPI_Comm comm, TrackedCommunicator* parent, std::uint32_t site) noexcept;
  /// All members of `parent` (nullptr: not known) have begun to duplicate it. The duplicate is known when the request
  /// is complete; `made`, the application's variable, is valid until then.
  void begin_duplicate(TrackedCommunicator* parent, std::uint64_t request, const MPI_Comm* made,
                       std::uint32_t site) noexcept;
  bool duplicates_pending() const noexcept { return duplicates_.load(std::memory_order_relaxed) != 0; }
  /// A request has completed. `good`: without an error.
  [[gnu::always_inline]] void finish_duplicate(std::uint64_t request, bool good) noexcept {
    if (duplicates_pending()) [[unlikely]]
      find_duplicate(request, good);
  }
  /// Some ranks have created `comm`.
  void add_unrelated(MPI_Comm comm, std::uint32_t site) noexcept;
  /// All members of `parent` have created a window or opened a file.
  void add_window(MPI_Win window, TrackedCommunicator* parent, std::uint32_t site) noexcept;
  void add_file(MPI_File file, TrackedCommunicator* parent, const char* path, std::uint32_t site) noexcept;

  /// Removes a handle that is about to be freed from the table and returns its entry; nullptr if there is none. The
  /// entry is then released, or put back if the library has refused to free the handle.
  TrackedCommunicator* extract(std::uint64_t bits, CommunicatorKind kind) noexcept {
    TrackedCommunicator* const removed = table(kind).remove(bits);
    generation_.fetch_add(1, std::memory_order_relaxed);
    return removed;
  }
  void release(TrackedCommunicator* tracked) noexcept;
  void put_back(std::uint64_t bits, TrackedCommunicator* tracked) noexcept;

  void set_name(std::uint64_t bits, CommunicatorKind kind, const char* name) noexcept;

  /// The ranks of a group in MPI_COMM_WORLD, of a large one only the first.
  struct WorldRanks {
    std::vector<int> ranks;
    int size = 0;  ///< of the group, 0 for an invalid one; -1: not known
    bool complete() const noexcept { return static_cast<int>(ranks.size()) == size; }
  };
  WorldRanks world_ranks(MPI_Group group) noexcept;

 private:
  struct Members {
    int size = 0, rank = -1, first = -1, stride = 0;  ///< as CommunicatorRecord
    int local_size = 0;                               ///< the same, and the following
    unsigned side = 0;
    std::uint64_t identity = 0;  ///< of an intercommunicator the same on all its members, and for its groups only
  };
  Members members_of(MPI_Comm comm) noexcept;
  void find_remote(MPI_Comm comm, Members& members) noexcept;
  Members members_of(const TrackedCommunicator& tracked) const noexcept;
  TrackedCommunicator* reserve() noexcept;
  void describe(TrackedCommunicator& tracked, CommunicatorKind kind, std::uint64_t uid, std::uint64_t parent_uid,
                const Members& members, const char* name, std::uint32_t site) noexcept;
  /// The next intercommunicator of its groups.
  std::uint64_t inter_uid(const Members& members) noexcept;
  /// Adds the next communicator, window or file that all members of `parent` create together, with the same members.
  TrackedCommunicator* add_like(TrackedCommunicator* parent, CommunicatorKind kind, const char* name,
                                std::uint32_t site) noexcept;
  void find_duplicate(std::uint64_t request, bool good) noexcept;
  CommunicatorKind kind_in_record(const TrackedCommunicator& tracked) const noexcept {
    return static_cast<CommunicatorKind>(file_.communicators[tracked.index].kind.get() & 0xff);
  }
  using Table = HandleTable<std::uint64_t, TrackedCommunicator>;
  Table& table(CommunicatorKind kind) noexcept {
    return kind == CommunicatorKind::window ? windows_ : kind == CommunicatorKind::file ? files_ : comms_;
  }
  const Table& table(CommunicatorKind kind) const noexcept {
    return const_cast<CommunicatorTracker*>(this)->table(kind);
  }
  void insert(std::uint64_t bits, TrackedCommunicator* tracked) noexcept;

  /// `kind`: with or without freed_flag. The caller holds the mutex.
  void set_kind(std::uint32_t index, std::uint32_t kind) noexcept;

  /// A communicator that MPI_Comm_idup creates, until the request is complete.
  struct Duplicate {
    std::uint64_t request = 0;  ///< 0: none
    const MPI_Comm* made = nullptr;
    TrackedCommunicator* tracked = nullptr;  ///< nullptr: its parent is not known
    std::uint32_t site = no_index;
  };
  static constexpr unsigned most_duplicates = 16;  ///< at one time; further ones are not tracked

  RecordFile& file_;
  std::atomic<std::uint32_t> generation_{0};
  std::atomic<unsigned> duplicates_{0};  ///< in `duplicate_`
  Duplicate duplicate_[most_duplicates];
  std::uint32_t freed_[max_freed];  ///< indices of entries that are kept, the oldest at next_freed_
  unsigned next_freed_ = 0;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> inters_;  ///< identities, and how many were created
  std::atomic<bool> world_exists_{false};                        ///< not in programs that use sessions only
  BriefMutex mutex_;
  TrackedCommunicator all_[max_communicators];
  std::uint32_t first_vacant_ = 0;  ///< no entry before it is vacant
  Table comms_;
  Table windows_;
  Table files_;
};

}  // namespace bestride::inline interpose
