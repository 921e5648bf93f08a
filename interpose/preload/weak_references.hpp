// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weak references to MPI functions that do not exist are null without the preload. The linker binds those of a library
// before those of an object that stands in front of it in the search order, so libraries that the program needs are
// bound to our stubs before we can hide them.

namespace bestride::preload {

/// Binds the weak references of all loaded objects that are bound to the stub of a slot for which `present` (indexed by
/// slot) is false to what they would be bound to without us: another library's definition (a tool's), or null. Only
/// while the process starts, when no other thread runs. Calls no function of libc.
void rebind_weak_references(const bool* present) noexcept;

}  // namespace bestride::preload
