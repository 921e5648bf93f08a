// SPDX-License-Identifier: Apache-2.0
// A library with functions at known lines, for symbolizer_test.cpp. Compiled with -g -O1.
namespace sample {

extern "C" __attribute__((noinline, visibility("default"))) void* sample_here() { return __builtin_return_address(0); }

struct Solver {
  void* step(int);
};

inline __attribute__((always_inline)) void* exchange() {
  void* const here = sample_here();  // line 12
  asm volatile("" : : "r"(here) : "memory");
  return here;
}

__attribute__((noinline)) void* Solver::step(int) {
  void* const here = exchange();  // line 18
  asm volatile("" : : "r"(here) : "memory");
  return here;
}

}  // namespace sample

extern "C" __attribute__((visibility("default"))) void* sample_call() {
  void* const here = sample::Solver{}.step(1);
  asm volatile("" : : "r"(here) : "memory");
  return here;
}
