// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pre-call hook: the backend is told of calls that it has not intercepted (services.h, watch). While no hook is
// installed, a resolved slot leads straight to the MPI library, at no cost. After a hook is installed, the slots of
// these functions keep leading to their lazy thunks, and their resolved targets are kept here. Alternative considered:
// intercepting all functions with the backend's own entries, which needs 550 prototypes for every ABI and costs time in
// each call of every job, although few jobs need it.

namespace bestride::preload {

/// From now on the slot leads to the backend's entry, and the hook is no longer called for it. May be called at any
/// time.
void intercept_slot(unsigned index, void* entry) noexcept;

/// Installs the hook (services.h, watch).
void watch(void (*before)()) noexcept;

/// Called when a slot that is not intercepted was resolved. Stores `target` into the slot; if a hook is installed,
/// keeps `target` here instead.
void resolve_slot(unsigned index, void* target) noexcept;

/// The target of a call that came through the lazy thunk: the backend's entry or the target that resolve_slot() kept;
/// nullptr if there is none.
void* hooked_target(unsigned index) noexcept;

/// Calls the hook, if one is installed and applies to this slot.
void call_hook(unsigned index) noexcept;

}  // namespace bestride::preload
