// SPDX-License-Identifier: Apache-2.0
#pragma once
// RespelledTypes: the MPI datatypes that Bestride creates, one per layout and basic type, kept for the application's
// next type with that layout.
//
// If a type were created for each type of the application, a program that creates, uses and frees a type in each
// iteration would grow (quirks::freed_types_keep_memory). What is not given back is bounded by a limit on the number of
// types created.
// Types are created and freed only within MPI calls of the application. A reference may be dropped anywhere, also at
// the end of a thread.
//
// The number of types alive is limited, too, because an application must not fail because of the types created here
// (quirks::size_in_handles_is_misread). At most max_alive types are kept, and none is created while `crowded` or more
// types exist, so applications with up to `crowded` types are safe. Beyond that only types in use are kept.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "datatype/respell.hpp"

namespace bestride::inline interpose {

struct RespelledType {
  LayoutPtr layout;
  MPI_Datatype leaf = MPI_DATATYPE_NULL;
  Respelled respelled;
  std::uint64_t last_used = 0;
  std::atomic<std::uint32_t> references{1};  ///< one is held by RespelledTypes

  void drop() noexcept {
    if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
};

class RespelledTypeRef {
 public:
  RespelledTypeRef() = default;
  /// Takes ownership of one reference.
  explicit RespelledTypeRef(RespelledType* type) noexcept : type_(type) {}
  RespelledTypeRef(RespelledTypeRef&& other) noexcept : type_(std::exchange(other.type_, nullptr)) {}
  RespelledTypeRef& operator=(RespelledTypeRef&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~RespelledTypeRef() {
    if (type_) type_->drop();
  }
  /// nullptr if empty.
  const Respelled* get() const noexcept { return type_ ? &type_->respelled : nullptr; }
  explicit operator bool() const noexcept { return type_ != nullptr; }

 private:
  RespelledType* type_ = nullptr;
};

class RespelledTypes {
 public:
  /// The type that respell(*layout, leaf, leaf_size) creates. Empty if it can't be created, or if too many types were
  /// created. Any thread, within an MPI call.
  RespelledTypeRef respelled(const LayoutPtr& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept;
  /// The application has committed `type`. If many types are alive, frees those that are not referenced. Any thread,
  /// within an MPI call.
  void leave_room_for(MPI_Datatype type) noexcept {
    if (is_crowded(type)) [[unlikely]]
      free_idle();
  }
  /// Frees all types, because MPI is about to end or may be initialized again. Remaining references must not be used
  /// any more.
  void clear() noexcept;

 private:
  static constexpr unsigned max_harmless = 512;
  static constexpr unsigned crowded = 384;
  static constexpr int max_alive = max_harmless - crowded;  ///< types of this class and their components
  static constexpr std::uint64_t max_made = 65536;          ///< with 128 bytes lost for each: 8 MiB
  /// True if this is MPICH's handle of a type that was created while `crowded` others were alive.
  static bool is_crowded(auto type) noexcept {  // a template: handles may be pointers
    if constexpr (std::is_integral_v<decltype(type)>) {
      const auto handle = static_cast<std::uint32_t>(type);  // 2 bits: 3 for all but the first types; 26 bits: number
      return handle >> 30 == 3 && (handle & 0x3ffffff) >= crowded;
    }
    return false;
  }
  /// Frees the least recently used half of the types that are not referenced.
  void make_room() noexcept;
  void free_idle_until(std::uint64_t last_used) noexcept;
  static bool idle(const RespelledType& type) noexcept {
    return type.references.load(std::memory_order_acquire) == 1;  // a new reference would need the mutex
  }
  /// Frees all types that are not referenced. The functions above are called with the mutex held, this one is not.
  void free_idle() noexcept;

  std::mutex mutex_;
  std::vector<RespelledType*> types_;  ///< sorted by key
  std::uint64_t made_ = 0, uses_ = 0;
  int alive_ = 0;  ///< sum of types_alive
};

}  // namespace bestride::inline interpose
