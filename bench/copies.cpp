// SPDX-License-Identifier: Apache-2.0
// The C library's memcpy against copy_bytes (base/copy.hpp), by the distance of destination and source modulo 4096.
//
//   bench_copies
// Prints GB/s for each size and distance, the best of 15 turns of each, in turns.
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "base/copy.hpp"

namespace {

/// Seconds of a copy.
template <class Copy>
double turn(Copy copy, char* to, const char* from, std::size_t bytes) {
  const std::size_t copies = std::max<std::size_t>(1, (8 << 20) / bytes);
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < copies; ++i) {
    copy(to, from, bytes);
    asm volatile("" : : "r"(to) : "memory");
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / static_cast<double>(copies);
}

}  // namespace

int main() {
  constexpr std::size_t half = 16 << 20;
  void* mapped = mmap(nullptr, 2 * half, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 1;
  char* memory = static_cast<char*>(mapped);
  std::memset(memory, 1, 2 * half);
  std::printf("  bytes  distance   memcpy  copy_bytes\n");
  for (const std::size_t bytes : {1024, 4096, 16384, 65536, 262144, 1048576, 4194304})
    for (const std::size_t distance : {0, 1, 16, 63, 64, 2048, 4080}) {
      double best[2] = {1, 1};
      for (int time = 0; time < 15; ++time) {
        best[0] = std::min(best[0], turn([](void* to, const void* from, std::size_t n) { std::memcpy(to, from, n); },
                                         memory + half + distance, memory, bytes));
        best[1] = std::min(best[1], turn(bestride::copy_bytes, memory + half + distance, memory, bytes));
      }
      const auto size = static_cast<double>(bytes);
      std::printf("%7zu%10zu%9.1f%12.1f\n", bytes, distance, size / best[0] / 1e9, size / best[1] / 1e9);
    }
}
