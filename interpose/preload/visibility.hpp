// SPDX-License-Identifier: Apache-2.0
#pragma once
// The preload library exports every function of MPI-5.0, whatever MPI library the process has, and if it has none. To
// programs, libraries and plugins only those functions may appear to exist that would exist without the preload: they
// test for MPI with dlsym() and with weak references (mpi4py looks for an MPI library in the global scope before it
// loads one). So exports are hidden when this object is relocated, before any constructor runs:
// - No MPI library is mapped: all MPI functions. If one is loaded later, its own symbols lead to our stubs
//   (late_library.hpp), and ours stay hidden.
// - An MPI library is mapped: the functions that it lacks.
// Weak references of libraries that were relocated earlier are bound again (weak_references.hpp).
// docs/decisions/visibility.md compares the alternatives.
//
// There is no function to call: the linker runs adapt_at_start() (visibility.cpp) as the resolver of an indirect
// function (STT_GNU_IFUNC).
//
// __gmon_start__ tells us of later loads: every object that is built with glibc's start files refers to it, and only
// programs built for gprof define it. We export it; in a process without MPI, as an indirect function. So the linker
// calls us once for each object that dlopen() loads, when all objects of that dlopen() are mapped and before those are
// relocated that need the object.
