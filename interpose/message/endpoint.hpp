// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two endpoints of a message: the arguments that MPI is given in place of (buffer, count, type).
//
// An endpoint is prepared, the call is made with its buffer(), count() and type(), and then the endpoint is completed.
// Sender and receiver decide independently: on the wire, a packed message is the same bytes in the same order as the
// typed one. If an endpoint gains nothing, prepare() returns false and the call is forwarded unchanged. The same holds
// for unusual arguments (negative counts, null buffers, unknown handles) and missing memory, so MPI itself reports its
// errors.
#include <mpi.h>

#include <climits>
#include <cstdint>
#include <type_traits>

#include "interpose/device/staging.hpp"
#include "interpose/objects/address.hpp"
#include "interpose/objects/buffer_pool.hpp"
#include "interpose/objects/plan.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/objects/type_registry.hpp"

namespace bestride::inline interpose {

/// The largest count that an MPI function with this count type accepts.
template <class Count>
constexpr std::int64_t largest_count = std::is_same_v<Count, int> ? INT_MAX : INT64_MAX;

/// The entry of a type whose messages may gain from packing or respelling; nullptr: forward the call. This is the one
/// look-up that every call makes, so it is inlined into every entry: a unity batch has more callers than GCC would
/// inline it into.
[[gnu::always_inline]] inline TypeEntry* find_candidate(MPI_Datatype type) noexcept {
  TypeEntry* entry = runtime().types.find(type);
  return entry && !entry->forward_only() ? entry : nullptr;
}
[[gnu::always_inline]] inline TypeEntry* find_candidate_on_host(MPI_Datatype type, std::int64_t count) noexcept {
  TypeEntry* entry = runtime().types.find(type);
  return entry && (!entry->forward_only() || count >= entry->respell_from()) ? entry : nullptr;
}
/// If a GPU runtime is detected, every message is examined, because its buffer may be device memory. An unknown type
/// has an opaque entry.
TypeEntry* type_entry_or_opaque(MPI_Datatype type) noexcept;
/// The entry of a type of which `count` elements may gain: from packing or respelling, from respelling many contiguous
/// bytes, or because they may be in device memory. nullptr: forward the call.
[[gnu::always_inline]] inline TypeEntry* find_candidate(MPI_Datatype type, std::int64_t count) noexcept {
  if (gpu_runtime_detected()) [[unlikely]]
    return type_entry_or_opaque(type);
  return find_candidate_on_host(type, count);
}
/// The entry of a type if a message of `count` elements to or from `peer` may gain. nullptr: forward the call.
[[gnu::always_inline]] inline TypeEntry* find_candidate(MPI_Datatype type, std::int64_t count, CallKind kind, int peer,
                                                        MPI_Comm comm) noexcept {
  if (gpu_runtime_detected()) [[unlikely]]
    return type_entry_or_opaque(type);
  TypeEntry* entry = find_candidate_on_host(type, count);
  if (!entry) return nullptr;
  const unsigned left = entry->forwarded_at(count, kind);
  if (left == TypeEntry::everywhere) return nullptr;
  return left && (left >> static_cast<int>(runtime().distance(comm, peer)) & 1) ? nullptr : entry;
}

/// What a kind of call allows.
struct CallTraits {
  bool allows_respelling = true;  ///< the library may be given datatypes made by Bestride
  bool blocks_alone = false;  ///< the call returns when this message is complete; nothing else is in flight meanwhile
  bool packing = true;        ///< the library may be given packed bytes
  /// The library passes the user's buffer to its transport, so the engine packs (interpose/engine/).
  bool engine = false;
};

/// The library packs these messages into the buffer of MPI_Buffer_attach, so the engine does not serve them.
template <auto slot>
constexpr bool is_buffered = false;
template <>
inline constexpr bool is_buffered<&Calls::Bsend> = true;
template <>
inline constexpr bool is_buffered<&Calls::Ibsend> = true;
template <>
inline constexpr bool is_buffered<&Calls::Bsend_init> = true;
#if MPI_VERSION >= 4
template <>
inline constexpr bool is_buffered<&Calls::Bsend_c> = true;
template <>
inline constexpr bool is_buffered<&Calls::Ibsend_c> = true;
template <>
inline constexpr bool is_buffered<&Calls::Bsend_init_c> = true;
#endif
/// find_candidate() for a send; what is known of other sends does not hold for buffered ones.
template <auto slot>
[[gnu::always_inline]] inline TypeEntry* find_sender(MPI_Datatype type, std::int64_t count, CallKind kind, int peer,
                                                     MPI_Comm comm) noexcept {
  if constexpr (is_buffered<slot>)
    return find_candidate(type, count);
  else
    return find_candidate(type, count, kind, peer, comm);
}

class Endpoint {
 public:
  /// The arguments that MPI is given. Valid after prepare() returned true.
  void* buffer() const noexcept { return mpi_buffer_; }
  std::int64_t count() const noexcept { return count_; }
  MPI_Datatype type() const noexcept { return type_; }

  Strategy strategy() const noexcept { return strategy_; }
  const char* reason() const noexcept { return reason_; }
  Plan* plan() const noexcept { return plan_.get(); }
  CallKind kind() const noexcept { return kind_; }
  Distance distance() const noexcept { return distance_; }
  Packing packing() const noexcept { return packing_; }
  bool packs() const noexcept { return strategy_ == Strategy::pack; }
  /// The call is forwarded, and the engine packs or unpacks its message.
  bool served() const noexcept { return served_; }
  /// Set for device memory that MPI is given through a staging buffer.
  const StagingPtr& staging() const noexcept { return staging_; }
  /// Device memory that could not be moved: MPI must not be called with this endpoint. raise_error() raises and returns
  /// the call's error.
  bool failed() const noexcept { return failed_ || (staging_ && staging_->failed()); }
  int raise_error() const;
  /// Call if an allocation other than the data buffer fails: MPI must not be called with this endpoint if it is device
  /// memory.
  void refuse_device_memory() noexcept {
    if (staging_) failed_ = true;
  }
  /// Forwards the user's own arguments after all, although prepare() returned true.
  void forward_because(const char* why) noexcept {
    strategy_ = Strategy::forward;
    reason_ = why;
    lease_.release();
    // A buffer that MPI can't access can't be forwarded.
    refuse_device_memory();
    staging_.reset();
  }
  /// Releases the packing buffer.
  void release() noexcept {
    lease_.release();
    staging_.reset();
  }

 protected:
  /// Chooses a strategy and allocates what it needs. Returns false if the call is to be forwarded unchanged, or if
  /// failed(); reason() has the cause.
  bool prepare(CallKind kind, const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
               std::int64_t largest, CallTraits traits) noexcept;

  enum class DeviceDecision : std::uint8_t { no, untouched, staged, failed };
  /// Device memory is staged, or forwarded to an MPI that accepts it.
  DeviceDecision prepare_device(const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm,
                                std::int64_t largest) noexcept;

  /// The user's type, known only with BESTRIDE_PARANOID; MPI_DATATYPE_NULL if it has been freed since.
  MPI_Datatype user_type() const noexcept;

  PlanRef plan_;
  const Packer* packer_ = nullptr;
  BufferLease lease_;
  StagingPtr staging_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  bool failed_ = false;
  bool served_ = false;
  void* user_ = nullptr;
  void* mpi_buffer_ = nullptr;
  std::int64_t count_ = 0;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  Strategy strategy_ = Strategy::forward;
  CallKind kind_ = CallKind::send;
  Distance distance_ = Distance::node;
  Packing packing_ = Packing::possible;
  const char* reason_ = "";
  MPI_Datatype user_type_ = MPI_DATATYPE_NULL;
  std::uint64_t user_type_id_ = 0;
  std::int64_t user_count_ = 0;
};

class SendEndpoint : public Endpoint {
 public:
  bool prepare(const void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest,
               CallTraits traits = {}) noexcept {
    return Endpoint::prepare(CallKind::send, user, count, type, peer, comm, largest, traits);
  }
  /// Packs, if that is the strategy: once before a call, or before each start of a persistent one.
  void fill() noexcept;
};

class ReceiveEndpoint : public Endpoint {
 public:
  bool prepare(void* user, std::int64_t count, TypeEntry* type, int peer, MPI_Comm comm, std::int64_t largest,
               CallTraits traits = {}) noexcept {
    return Endpoint::prepare(CallKind::receive, user, count, type, peer, comm, largest, traits);
  }
  /// True if complete() needs the status of the receive.
  bool wants_status() const noexcept { return packs(); }
  /// Call when the receive has completed without error. Unpacks the bytes that arrived and no others; none if the
  /// receive was cancelled.
  void complete(const MPI_Status& status) noexcept;
  /// Completes a receive whose whole message is known to have arrived, as in collectives.
  void complete_whole() noexcept;
  /// Packs the bytes that the receive may overwrite; for calls that send from and receive into one buffer.
  void fill() noexcept;
};

}  // namespace bestride::inline interpose
