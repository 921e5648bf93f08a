// SPDX-License-Identifier: Apache-2.0
#pragma once
// SpareMemory: the memory of one freed object of a kind, for the next one of a program that makes one at a time.
#include <atomic>

namespace bestride::inline interpose {

/// For constinit variables. Any thread.
class SpareMemory {
 public:
  /// nullptr: there is none.
  void* take() noexcept {
    return spare_.load(std::memory_order_relaxed) ? spare_.exchange(nullptr, std::memory_order_acquire) : nullptr;
  }
  /// Returns what is to be freed instead, or nullptr.
  void* keep(void* memory) noexcept { return keeps ? spare_.exchange(memory, std::memory_order_acq_rel) : memory; }

 private:
  // AddressSanitizer would miss uses of the freed object.
#ifdef __SANITIZE_ADDRESS__
  static constexpr bool keeps = false;
#else
  static constexpr bool keeps = true;
#endif
  std::atomic<void*> spare_{nullptr};
};

}  // namespace bestride::inline interpose
