// SPDX-License-Identifier: Apache-2.0
#pragma once
// RespelledTypes: the MPI datatypes that Bestride creates, one per layout and basic type, kept for the application's
// next type with that layout.
//
// MPICH 4.0.2 does not give back all memory of a freed type (64 bytes for a resized type, 128 with its components;
// measured). If a type were created for each type of the application, a program that creates, uses and frees a type in
// each iteration would grow. Memory that MPICH does not give back is bounded by a limit on the number of types created.
// Types are created and freed only within MPI calls of the application. A reference may be dropped anywhere, also at
// the end of a thread.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "datatype/respell.hpp"

namespace bestride::inline interpose {

struct RespelledType {
  LayoutPtr layout;
  MPI_Datatype leaf = MPI_DATATYPE_NULL;
  bool as_bytes = false;
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
  /// The type that respell_as_bytes(*layout) creates. Errors and threads as above.
  RespelledTypeRef as_bytes(const LayoutPtr& layout) noexcept;
  /// Frees all types, because MPI is about to end or may be initialised again. Remaining references must not be used
  /// any more.
  void clear() noexcept;

 private:
  /// MPICH 4.0.2 rounds the number of bytes that MPI_Pack and MPI_Bsend move of a contiguous type to a multiple of the
  /// second byte of its handle (measured). This is harmless for up to 512 types at a time; with this limit only a
  /// program with that many types of its own exceeds it.
  static constexpr std::size_t max_kept = 256;
  static constexpr std::uint64_t max_made = 65536;  ///< with 128 bytes lost for each: 8 MiB
  template <class Make>
  RespelledTypeRef get(const LayoutPtr& layout, MPI_Datatype leaf, bool as_bytes, Make make) noexcept;
  /// Frees the least recently used half of the types that are not referenced.
  void make_room() noexcept;

  std::mutex mutex_;
  std::vector<RespelledType*> types_;  ///< sorted by key
  std::uint64_t made_ = 0, uses_ = 0;
};

}  // namespace bestride::inline interpose
