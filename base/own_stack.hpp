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

// If a sanitizer's runtime is in the process, it must know which stack a thread is on.
extern "C" {
[[gnu::weak]] void __sanitizer_start_switch_fiber(void** kept, const void* bottom, std::size_t bytes);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void* kept, const void** old_bottom, std::size_t* old_bytes);
[[gnu::weak]] void* __tsan_get_current_fiber(void);
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
}

namespace bestride {

namespace own_stack_detail {

/// Announces the two switches of stacks to a sanitizer. Functions that begin on one stack, for ThreadSanitizer, and end
/// on the other are not instrumented: it would count their ends on the wrong one.
class Announced {
 public:
  Announced() noexcept {
    if (!__tsan_create_fiber) return;
    caller_ = __tsan_get_current_fiber();
    callee_ = __tsan_create_fiber(0);
  }
  ~Announced() {
    if (callee_) __tsan_destroy_fiber(callee_);
  }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;

  /// On the caller's stack, right before and after its switch.
  [[gnu::no_sanitize_thread]] void leaving(const void* bottom, std::size_t bytes) noexcept {
    if (callee_) __tsan_switch_to_fiber(callee_, 0);
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(&kept_, bottom, bytes);
  }
  void back() noexcept {
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(kept_, nullptr, nullptr);
  }
  /// On the other stack, first and last.
  void arrived() noexcept {
    if (__sanitizer_finish_switch_fiber) __sanitizer_finish_switch_fiber(nullptr, &bottom_, &bytes_);
  }
  [[gnu::no_sanitize_thread]] void returning() noexcept {
    if (callee_) __tsan_switch_to_fiber(caller_, 0);
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(nullptr, bottom_, bytes_);
  }

 private:
  void *kept_ = nullptr, *caller_ = nullptr, *callee_ = nullptr;
  const void* bottom_ = nullptr;  ///< of the caller's stack
  std::size_t bytes_ = 0;
};

template <class Function>
struct Work {
  Function& function;
  Announced announced;
  ucontext_t caller, callee;
  /// The two halves of the address of a Work.
  [[gnu::no_sanitize_thread]] static void run(unsigned high, unsigned low) noexcept {
    auto* const work = reinterpret_cast<Work*>(std::uintptr_t{high} << 32 | low);
    work->announced.arrived();
    work->function();
    work->announced.returning();
  }
};

}  // namespace own_stack_detail

/// Calls function(), which must not throw, with a stack of 1 MiB; with the present one if there is no memory.
template <class Function>
void on_own_stack(Function function) noexcept {
  constexpr std::size_t guard = 4096, bytes = (1 << 20) + guard;
  void* const stack = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack != MAP_FAILED) {
    using Work = own_stack_detail::Work<Function>;
    Work work{function, {}, {}, {}};
    mprotect(stack, guard, PROT_NONE);
    volatile bool called = false;  // getcontext() may return twice, as far as the compiler knows
    if (getcontext(&work.callee) == 0) {
      work.callee.uc_stack = {stack, 0, bytes};
      work.callee.uc_link = &work.caller;
      const auto address = reinterpret_cast<std::uintptr_t>(&work);
      makecontext(&work.callee, reinterpret_cast<void (*)()>(&Work::run), 2, static_cast<unsigned>(address >> 32),
                  static_cast<unsigned>(address));
      work.announced.leaving(stack, bytes);
      called = swapcontext(&work.caller, &work.callee) == 0;
      work.announced.back();
    }
    munmap(stack, bytes);
    if (called) return;
  }
  function();
}

}  // namespace bestride
