// SPDX-License-Identifier: Apache-2.0
// A function inside of another one, into which a third one is inlined, for symbolizer_test.cpp.
#if defined(__GNUC__) && !defined(__clang__)
extern void* sample_here(void);

static inline __attribute__((always_inline)) void* read_block(void) {
  void* const here = sample_here();  // line 7
  __asm__ volatile("" : : "r"(here) : "memory");
  return here;
}

__attribute__((visibility("default"))) void* sample_nested(void) {
  __attribute__((noinline)) void* region(void) {
    void* const here = read_block();  // line 14
    __asm__ volatile("" : : "r"(here) : "memory");
    return here;
  }
  void* const here = region();
  __asm__ volatile("" : : "r"(here) : "memory");
  return here;
}
#endif
