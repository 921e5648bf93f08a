// SPDX-License-Identifier: Apache-2.0
#pragma once
// TypeRegistry: from a datatype handle to what is known of the type; one lock-free look-up per call.
//
// Only types whose commit was seen are in it (MPI_ and PMPI_Type_commit, Type_dup of such a one) and the pair types, which are
// predefined but have gaps. Every other handle - predefined, uncommitted, invalid, made in a way not seen - is not found, and its
// call goes to MPI untouched: an uncommitted type stays MPI's error, and a handle that was freed in a way not seen can't come
// back as a stale layout. Alternative that lost: decoding any unknown handle at first use after probing that it is committed;
// it gains types made before the preload (there are none) and risks a reused handle, that is wrong bytes.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "datatype/decode.hpp"
#include "interpose/back/handle_table.hpp"
#include "interpose/back/plan.hpp"

namespace bestride {

/// Predefined, or made by MPI_Type_create_f90_*, which needs no commit. `type` is valid.
bool needs_no_commit(MPI_Datatype type) noexcept;

/// One committed type, from its commit to its free. Decoded at first use that can gain by it.
///
/// What a call that is left to MPI reads lies in its first 40 bytes: between two exchanges a stencil code sweeps its domain, everything of
/// ours is out of the caches, and each line costs such a call 50 to 100 ns.
class TypeEntry {
 public:
  enum class State : std::uint8_t {
    undecoded,
    useful,      ///< has gaps between elements or inside them
    contiguous,  ///< any count of it is one block
    empty,       ///< no bytes at all
    opaque,      ///< can't be represented
  };
  TypeEntry(MPI_Datatype handle, std::uint64_t id, bool needs_no_commit = false, State state = State::undecoded) noexcept
      : handle_(handle), id_(id), needs_no_commit_(needs_no_commit), state_(state) {}

  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// No message of any count can gain, but by a second spelling of contiguous bytes: see respell_from().
  bool leave_alone() const noexcept { return state() > State::useful; }
  /// A contiguous type: the least count at which respelling may pay anywhere. Others: never.
  std::int64_t respell_from() const noexcept { return respell_from_.load(std::memory_order_relaxed); }
  /// At which distances messages of this kind and count are known to be left to MPI, whatever the peer: bit d is Distance d.
  unsigned left_at(std::int64_t count, CallKind kind) const noexcept {
    const std::uint64_t left = left_.load(std::memory_order_relaxed);
    return left >> left_bits == static_cast<std::uint64_t>(count) ? left >> left_shift(kind) & everywhere : 0;
  }
  static constexpr unsigned everywhere = (1u << distance_count) - 1;
  /// Remembered for the last such count.
  void leave(std::int64_t count, CallKind kind, unsigned distances) noexcept {
    if (count >> (63 - left_bits) != 0) return;
    const std::uint64_t known = left_.load(std::memory_order_relaxed), wanted = static_cast<std::uint64_t>(count);
    left_.store((known >> left_bits == wanted ? known : wanted << left_bits) | std::uint64_t{distances} << left_shift(kind), std::memory_order_relaxed);
  }
  /// Unique in the process, never used again, unlike the handle.
  std::uint64_t id() const noexcept { return id_; }
  MPI_Datatype handle() const noexcept { return handle_; }
  /// It is here because this rank had a use for it: other ranks may not know it.
  bool needs_no_commit() const noexcept { return needs_no_commit_; }

  /// The plan for `count` (> 0) elements, or nullptr: no memory, or a first small use (it pays from the second on). The plan is
  /// kept alive by the caller's reference.
  PlanRef plan(std::int64_t count) noexcept;
  /// The layout of `count` (> 0) elements, whatever is gained by it: for memory that MPI can't reach. nullptr: opaque, or no memory.
  LayoutPtr layout(std::int64_t count) noexcept;
  /// The next use is not the only one, however small.
  void expect_reuse() noexcept { reused_.store(true, std::memory_order_relaxed); }
  /// Decodes if that has not been done. Not a hot path.
  State decoded_state() noexcept;
  /// Bytes of one element; only if decoded and not opaque.
  std::int64_t extent() const noexcept { return decoded_.extent; }
  /// The one basic type, and its size; 0 where there are several. Only if decoded.
  MPI_Datatype leaf() const noexcept { return decoded_.leaf; }
  std::int64_t leaf_size() const noexcept { return leaf_size_; }
  /// The layout of one element; only if state() says that it was decoded and is not opaque.
  const Layout& element() const noexcept { return *decoded_.layout; }
  /// The same, without the gaps.
  std::int64_t size() const noexcept { return decoded_.layout->size(); }
  /// Frees what the plans own in MPI and lets them go.
  void retire() noexcept;

 private:
  void decode_locked() noexcept;

  static constexpr int left_bits = (call_kind_count - static_cast<int>(CallKind::send)) * distance_count;
  static constexpr int left_shift(CallKind message) noexcept {
    return (static_cast<int>(message) - static_cast<int>(CallKind::send)) * distance_count;
  }

  const MPI_Datatype handle_;
  const std::uint64_t id_;
  const bool needs_no_commit_;
  std::atomic<State> state_;
  std::atomic<std::int64_t> respell_from_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::uint64_t> left_{0};  ///< count << left_bits | one bit a kind of message and distance
  bool seen_before(std::int64_t count) noexcept;
  std::int64_t seen_[8] = {};  ///< small counts used once
  std::size_t next_seen_ = 0;
  std::atomic<bool> reused_{false};
  DecodedType decoded_;
  std::int64_t leaf_size_ = 0;
  std::mutex mutex_;
  struct Counted {
    std::int64_t count;
    PlanRef plan;
  };
  std::vector<Counted> plans_;
  std::size_t oldest_ = 0;
  friend class TypeRegistry;
  TypeEntry* older_ = nullptr;  ///< after clear()
};

class TypeRegistry {
 public:
  TypeEntry* find(MPI_Datatype type) const noexcept { return table_.find(type); }
  /// A type is committed from now on. An older entry of the same handle is stale and goes. No memory: it is not known, but lost(), and
  /// left to MPI.
  void insert(MPI_Datatype type, bool needs_no_commit = false) noexcept;
  /// A type that needs no commit, where this rank has a use for it: contiguous messages that may gain, device memory.
  void insert_predefined(MPI_Datatype type) noexcept;
  /// The type is about to be freed.
  void remove(MPI_Datatype type) noexcept;
  /// Forgets all and frees the respelled types; afterwards every call is forwarded.
  void clear() noexcept;
  /// There was no memory for some type: one that is not known may have been committed.
  bool lost() const noexcept { return lost_.load(std::memory_order_relaxed); }
  std::size_t size() const noexcept { return table_.size(); }

 private:
  HandleTable<MPI_Datatype, TypeEntry> table_;
  std::atomic<std::uint64_t> next_id_{1};
  std::atomic<bool> lost_{false};
  TypeEntry* forgotten_ = nullptr;  ///< what clear() took out
};

}  // namespace bestride
