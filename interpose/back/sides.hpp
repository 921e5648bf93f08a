// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two sides of a message: what MPI is handed in place of (buffer, count, type).
//
// A side is prepared, the call is made with its buffer(), count() and type(), and then the side is settled. Sender and receiver
// choose on their own, since a packed message is what the typed one is on the wire: the same bytes in the same order.
// A side that has nothing to add says so in prepare(), and the call goes on untouched; so does everything odd (negative counts,
// null buffers, handles never seen, no memory), which keeps MPI's errors MPI's.
#include <mpi.h>

#include <climits>
#include <cstdint>
#include <type_traits>

#include "interpose/back/buffer.hpp"
#include "interpose/back/gpu/staging.hpp"
#include "interpose/back/plan.hpp"
#include "interpose/back/runtime.hpp"
#include "interpose/back/types.hpp"

namespace bestride {

/// Largest count an MPI function of this count type takes.
template <class Count>
constexpr std::int64_t largest_count = std::is_same_v<Count, int> ? INT_MAX : INT64_MAX;

/// The entry of a type whose messages may gain; nullptr: leave the call alone. The one look-up every call makes.
inline TypeEntry* worth_a_look(MPI_Datatype type) noexcept {
  TypeEntry* entry = runtime().types.find(type);
  return entry && !entry->leave_alone() ? entry : nullptr;
}
inline TypeEntry* worth_a_look_on_host(MPI_Datatype type, std::int64_t count) noexcept {
  TypeEntry* entry = runtime().types.find(type);
  return entry && (!entry->leave_alone() || count >= entry->respell_from()) ? entry : nullptr;
}
/// While a GPU is in play, every message is worth a look: its buffer may be device memory. A type nothing is known of has an opaque entry.
TypeEntry* any_type(MPI_Datatype type) noexcept;
/// The same for calls that a second spelling of contiguous bytes may serve, too, if they are many, and for device memory.
inline TypeEntry* worth_a_look(MPI_Datatype type, std::int64_t count) noexcept {
  if (gpu_in_play()) [[unlikely]] return any_type(type);
  return worth_a_look_on_host(type, count);
}
/// The same for one message.
inline TypeEntry* worth_a_look(MPI_Datatype type, std::int64_t count, CallKind kind, int peer, MPI_Comm comm) noexcept {
  if (gpu_in_play()) [[unlikely]] return any_type(type);
  TypeEntry* entry = worth_a_look_on_host(type, count);
  if (!entry) return nullptr;
  const unsigned left = entry->left_at(count, kind);
  if (left == TypeEntry::everywhere) return nullptr;
  return left && (left >> static_cast<int>(runtime().distance(comm, peer)) & 1) ? nullptr : entry;
}

/// What a kind of call does not allow.
struct Manner {
  bool trusting = true;  ///< the receiver's call is one that keeps the promise of presence.hpp
  bool spelling = true;  ///< the library may be handed types of ours
  bool alone = false;    ///< the call returns when this message is through: nothing else is under way meanwhile
  bool packing = true;   ///< the library may be handed packed bytes
};

class Side {
 public:
  /// What MPI is handed. Valid after prepare() returned true.
  void* buffer() const noexcept { return handed_; }
  std::int64_t count() const noexcept { return count_; }
  MPI_Datatype type() const noexcept { return type_; }

  Strategy strategy() const noexcept { return strategy_; }
  const char* reason() const noexcept { return reason_; }
  Plan* plan() const noexcept { return plan_.get(); }
  CallKind kind() const noexcept { return kind_; }
  Distance distance() const noexcept { return distance_; }
  Packing packing() const noexcept { return packing_; }
  bool packs() const noexcept { return strategy_ == Strategy::pack; }
  /// Device memory, handed to MPI by way of a buffer of ours.
  const StagingPtr& staging() const noexcept { return staging_; }
  /// Device memory that could not be moved: MPI must not be called with this side. raise() gives the call's error.
  bool refused() const noexcept { return refused_ || (staging_ && staging_->failed()); }
  int raise() const noexcept;
  /// For want of something else than memory for the bytes: MPI must not be called with this side if it is device memory.
  void refuse_on_gpu() noexcept {
    if (staging_) refused_ = true;
  }
  /// After prepare() returned true: the user's own arguments are handed on after all.
  void leave(const char* why) noexcept {
    strategy_ = Strategy::forward;
    reason_ = why;
    lease_.release();
    // What MPI can't reach can't be left to it.
    refuse_on_gpu();
    staging_.reset();
  }
  /// Gives the packing buffer back.
  void release() noexcept {
    lease_.release();
    staging_.reset();
  }

 protected:
  /// Decides, and takes what the decision needs. False: forward the call untouched; reason() says why.
  bool prepare(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
               std::int64_t largest, Manner manner) noexcept;

  enum class OnGpu : std::uint8_t { no, untouched, staged, refused };
  /// Device memory is staged, or left as it is for an MPI that takes it.
  OnGpu prepare_on_gpu(const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest) noexcept;

  /// With BESTRIDE_PARANOID: the user's type, if it has not been freed since, else MPI_DATATYPE_NULL.
  MPI_Datatype user_type() const noexcept;

  PlanRef plan_;
  const Packer* packer_ = nullptr;
  Lease lease_;
  StagingPtr staging_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool refused_ = false;
  void* user_ = nullptr;
  void* handed_ = nullptr;
  std::int64_t count_ = 0;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Strategy strategy_ = Strategy::forward;
  CallKind kind_ = CallKind::send;
  Distance distance_ = Distance::node;
  Packing packing_ = Packing::careful;
  const char* reason_ = "";
  MPI_Datatype user_type_ = MPI_DATATYPE_NULL;
  std::uint64_t user_type_id_ = 0;
  std::int64_t user_count_ = 0;
};

class Outgoing : public Side {
 public:
  bool prepare(const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest,
               Manner manner = {}) noexcept {
    return Side::prepare(CallKind::send, user, count, type, peer, comm, largest, manner);
  }
  /// Packs, if that is the strategy: once before a call, or before each start of a persistent one.
  void fill() noexcept;
};

class Incoming : public Side {
 public:
  bool prepare(void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest,
               Manner manner = {}) noexcept {
    return Side::prepare(CallKind::receive, user, count, type, peer, comm, largest, manner);
  }
  /// True if settle() needs the status of the receive.
  bool wants_status() const noexcept { return packs(); }
  /// The receive has completed without error: unpacks what arrived and nothing else; nothing at all if it was cancelled.
  void settle(const MPI_Status& status) noexcept;
  /// The same where what arrives is what was posted (collectives).
  void settle_whole() noexcept;
  /// For calls that send from and receive into one buffer: packs what the receive may overwrite.
  void fill() noexcept;
};

/// Where MPI would read or write lies in memory: not a null pointer with a relative type, nor one of MPI's special addresses.
inline bool address_is_sound(const void* user, const Layout& layout) noexcept {
  constexpr std::int64_t first_page = 4096;
  return user != MPI_IN_PLACE && reinterpret_cast<std::int64_t>(user) + layout.low() >= first_page;
}

}  // namespace bestride
