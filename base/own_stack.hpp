// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work that takes more stack than a thread of the application may have: pthread_create() accepts 16 KiB.
//
// The thread goes on another stack for a while. Alternative considered: another thread, which would wait for a lock of
// the dynamic loader that this one may hold.
#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>

namespace bestride {

namespace own_stack_detail {

template <class Function>
struct Work {
  Function& function;
  ucontext_t caller, callee;
  /// The two halves of the address of a Work.
  static void run(unsigned high, unsigned low) noexcept {
    reinterpret_cast<Work*>(std::uintptr_t{high} << 32 | low)->function();
  }
};

}  // namespace own_stack_detail

/// Calls function(), which must not throw, with a stack of 1 MiB; with the present one if there is no memory, or under
/// a sanitizer.
template <class Function>
void on_own_stack(Function function) noexcept {
  constexpr std::size_t guard = 4096, bytes = (1 << 20) + guard;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  void* const stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack != MAP_FAILED) {
    using Work = own_stack_detail::Work<Function>;
    Work work{function, {}, {}};
    mprotect(stack, guard, PROT_NONE);
    bool called = false;
    if (getcontext(&work.callee) == 0) {
      work.callee.uc_stack = {stack, 0, bytes};
      work.callee.uc_link = &work.caller;
      const auto address = reinterpret_cast<std::uintptr_t>(&work);
      makecontext(&work.callee, reinterpret_cast<void (*)()>(&Work::run), 2, static_cast<unsigned>(address >> 32),
                  static_cast<unsigned>(address));
      called = swapcontext(&work.caller, &work.callee) == 0;
    }
    munmap(stack, bytes);
    if (called) return;
  }
#endif
  function();
}

}  // namespace bestride
