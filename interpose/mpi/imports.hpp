// SPDX-License-Identifier: Apache-2.0
#pragma once
// Replaces a function that loaded objects import, in one of them or in all. A symbol of the same name exported by the
// preload library would catch the calls of every object in the process, and add a jump to each call in processes that
// never need the replacement.

namespace bestride::inline interpose {

/// From now on calls of `function` from the object that contains the address `inside` go to `replacement`. Returns the
/// function that they went to before, which `replacement` may call; nullptr: the object does not import `function`, or
/// its relocations can't be written, and nothing has changed. `replacement` may be called before this returns:
/// `original` is set first. Calls that other threads make meanwhile go to either. x86-64 and aarch64.
void* replace_import(const void* inside, const char* function, void* replacement, void** original) noexcept;

/// From now on calls of `function` from all objects that are loaded now, except the one that contains this function, go
/// to `replacement`, which calls `function` by its name. An object whose relocations can't be written goes on as
/// before.
void replace_imports(const char* function, void* replacement) noexcept;

/// The function that the object which contains the address `inside` gets by this name; nullptr: there is none.
void* find_function(const void* inside, const char* function) noexcept;

}  // namespace bestride::inline interpose
