// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/inspect.h"

#include "interpose/preload/slots.hpp"
#include "interpose/preload/watch.hpp"

#define BESTRIDE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {
// Can be found with `strings libbestride.so | grep 'bestride version'` on systems where nothing may be run.
constexpr char marker[] = "bestride version " BESTRIDE_VERSION;
}  // namespace

BESTRIDE_EXPORT const char* bestride_version(void) { return marker + sizeof "bestride version " - 1; }

BESTRIDE_EXPORT void* bestride_slot_target(const char* name) {
  using namespace bestride::preload;
  const unsigned slot = name ? slot_of(name) : no_slot;
  if (slot == no_slot) return nullptr;
  void* const target = slot_target(slot);
  return target ? target : hooked_target(slot);
}
