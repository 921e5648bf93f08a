// SPDX-License-Identifier: Apache-2.0
#pragma once
// ServedTypes: the definitions of types whose messages the engine packs (interpose/engine/), by the context with which
// the MPI library has registered the type with its transport.
//
// A context is an object of the library that stands for one type and, once this is gone, for another one. It is not
// owned here, and nothing has to be known of the end of a type: MPICH 4.0.2 does not withdraw the registration of a
// freed type in half of all runs (if bit 31 of UCX's address of it is set), and keeps types of nonblocking collectives
// for ever. A context is forgotten when its type is freed by the application, and when the library registers it again.
#include <memory>
#include <mutex>
#include <unordered_map>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/objects/type_definition.hpp"

namespace bestride::inline interpose {

/// Any thread.
class ServedTypes {
 public:
  /// The type with this context (not nullptr) is decoded. False: no memory, so the library packs.
  bool define(void* context, const std::shared_ptr<TypeDefinition>& definition) noexcept try {
    const std::lock_guard lock(mutex_);
    definitions_[context] = definition;
    return true;
  } catch (...) {
    return false;
  }
  void forget(void* context) noexcept {
    std::shared_ptr<TypeDefinition> forgotten;  // released without the lock
    const std::lock_guard lock(mutex_);
    const auto known = definitions_.find(context);
    if (known == definitions_.end()) return;
    forgotten = std::move(known->second);
    definitions_.erase(known);
  }
  /// nullptr: the library packs.
  std::shared_ptr<TypeDefinition> find(void* context) noexcept {
    const std::lock_guard lock(mutex_);
    const auto known = definitions_.find(context);
    return known == definitions_.end() ? nullptr : known->second;
  }

 private:
  BriefMutex mutex_;
  std::unordered_map<void*, std::shared_ptr<TypeDefinition>> definitions_;
};

}  // namespace bestride::inline interpose
