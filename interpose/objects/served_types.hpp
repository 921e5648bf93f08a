// SPDX-License-Identifier: Apache-2.0
#pragma once
// ServedTypes: the types whose messages the engine packs (interpose/engine/), or the time of whose messages it
// measures, by the context with which the MPI library has registered the type with its transport.
//
// A context is an object of the library that stands for one type and, once this is gone, for another one. It is not
// owned here, and nothing has to be known of the end of a type (quirks::registrations_outlive_types). A context is
// forgotten when its type is freed by the application, and when the library registers it again.
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/objects/type_definition.hpp"

namespace bestride::inline interpose {

struct ServedType {
  const std::shared_ptr<TypeDefinition> definition;  ///< decoded; nullptr: the library packs, and its time is measured
  std::atomic<std::int64_t> library_ns{0};           ///< that the library has spent on packing and unpacking messages
};

/// Any thread.
class ServedTypes {
 public:
  /// Sets the definition of the type with this context (not nullptr); it is decoded. False: no memory, so the library
  /// packs.
  bool define(void* context, const std::shared_ptr<TypeDefinition>& definition) noexcept {
    return set(context, definition) != nullptr;
  }
  /// Notes that the type with this context is not decoded, and that the library's time is to be measured. nullptr: no
  /// memory.
  std::shared_ptr<const ServedType> measure(void* context) noexcept { return set(context, nullptr); }
  void forget(void* context) noexcept {
    std::shared_ptr<ServedType> forgotten;  // released without the lock
    const std::lock_guard lock(mutex_);
    const auto known = types_.find(context);
    if (known == types_.end()) return;
    forgotten = std::move(known->second);
    types_.erase(known);
  }
  /// nullptr: nothing is known of this type.
  std::shared_ptr<ServedType> find(void* context) noexcept {
    const std::lock_guard lock(mutex_);
    const auto known = types_.find(context);
    return known == types_.end() ? nullptr : known->second;
  }

 private:
  std::shared_ptr<ServedType> set(void* context, const std::shared_ptr<TypeDefinition>& definition) noexcept try {
    auto type = std::make_shared<ServedType>(definition);
    std::shared_ptr<ServedType> before = type;  // released without the lock
    const std::lock_guard lock(mutex_);
    types_[context].swap(before);
    return type;
  } catch (...) {
    return nullptr;
  }

  BriefMutex mutex_;
  std::unordered_map<void*, std::shared_ptr<ServedType>> types_;
};

}  // namespace bestride::inline interpose
