// SPDX-License-Identifier: Apache-2.0
// The part of the heap that the preload library holds. The program that links heap_of_library.cpp replaces malloc and
// its relatives; each counts the blocks that were allocated from code of the preload library.
#pragma once

#include <cstddef>

namespace bestride::test {

// Begins to count: call it after MPI_Init, from one thread. Returns whether an object of the preload library is loaded;
// if none is, nothing is ever counted.
bool count_heap_of_library();

// Usable bytes of the blocks that were allocated since by the preload library and not freed. Any thread.
long heap_of_library();

}  // namespace bestride::test
