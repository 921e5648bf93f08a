// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts the program's allocations, for tests of code that must not allocate. Replaces the global operators, so only
// one source file of a program may include it.
#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<long> allocations{0};
}
void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
// Not inlined: the compiler would warn about free() of memory from operator new.
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
