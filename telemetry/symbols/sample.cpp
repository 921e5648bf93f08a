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

/// A function of a header that is installed. `inlined`: the address of its call, where it is inlined; `caller`: the
/// address after the call of a copy that is not inlined, which returns that of its call.
#line 100 "/usr/include/exchange.hpp"
static inline __attribute__((always_inline)) void* receive() {
  void* const here = sample::sample_here();
  asm volatile("" : : "r"(here) : "memory");
  return here;
}
static __attribute__((noinline)) void* receive_all(void** caller) {
  *caller = __builtin_return_address(0);
  return receive();
}
#line 200 "sample.cpp"
extern "C" __attribute__((visibility("default"))) void* sample_library_calls(void** inlined, void** caller) {
  *inlined = receive();                    // line 201
  void* const here = receive_all(caller);  // line 202
  asm volatile("" : : "r"(here) : "memory");
  return here;
}
