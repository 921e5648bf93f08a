// SPDX-License-Identifier: Apache-2.0
#pragma once
// Watching: the back hears of calls it has not engaged (services.h, watch). While nobody watches, a resolved slot leads straight to the MPI
// library and none of this is in the way; from then on the slots of these functions keep leading to their lazy thunks, and what they
// were resolved to is kept here.
// Alternative that lost: engaging all functions with the back's own entries. It needs 550 prototypes for every ABI, and each call of every
// job would pay for what few jobs need.

namespace bestride::front {

/// The back has this slot from now on; it is not watched any more. At any time.
void engage_slot(unsigned index, void* entry) noexcept;

/// services.h.
void watch(void (*before)()) noexcept;

/// A slot that is not engaged was resolved: leads it there, or keeps the target and tells the watcher, if there is one.
void settle_slot(unsigned index, void* target) noexcept;

/// Where a call that came by the lazy thunk has to go: the entry, or the target that settle_slot() kept; nullptr if there is none.
void* watched_target(unsigned index) noexcept;

/// Calls the watcher, if there is one and it watches this slot.
void tell_watcher(unsigned index) noexcept;

}  // namespace bestride::front
