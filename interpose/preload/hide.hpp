// SPDX-License-Identifier: Apache-2.0
#pragma once
// The preload library exports every function of MPI-5.0, whatever the MPI library has. A program that looks a function
// up with dlsym() before it calls it must get the same answer as without the preload. Therefore the symbols that the
// MPI library lacks are removed from this object's dynamic symbol table.
//
// This is done by a constructor, as soon as the program's own dependencies are mapped, and only if an MPI library is
// among them. Two cases are not covered. A program's weak reference to such a function is bound by the loader before
// any constructor runs: it is not null, and calling it returns an error (resolve.cpp). An MPI library that is opened
// later with dlopen() is not considered: programs look its symbols up through its handle.

namespace bestride::preload {

/// Removes the symbols that no object after this one defines. Idempotent.
void hide_absent_functions() noexcept;

}  // namespace bestride::preload
