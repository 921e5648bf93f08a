// SPDX-License-Identifier: Apache-2.0
#include "interpose/front/inspect.h"

#include "interpose/front/slots.hpp"

#define BESTRIDE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {
// Found by `strings libbestride.so | grep 'bestride version'` where nothing may be run.
constexpr char marker[] = "bestride version " BESTRIDE_VERSION;
}  // namespace

BESTRIDE_EXPORT const char* bestride_version(void) { return marker + sizeof "bestride version " - 1; }

BESTRIDE_EXPORT void* bestride_slot_target(const char* name) {
  using namespace bestride::front;
  const unsigned slot = name ? slot_of(name) : no_slot;
  return slot == no_slot ? nullptr : slot_target(slot);
}
