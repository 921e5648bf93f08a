// SPDX-License-Identifier: Apache-2.0
#include "kernels/isa.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <iterator>

#include "base/variables.hpp"

namespace bestride::inline kernels {
namespace {

constexpr std::string_view names[] = {"scalar", "avx2", "avx512"};

#if defined(__x86_64__)
/// Every CPU with AVX2 has F16C, but a hypervisor may hide it. Clang's __builtin_cpu_supports() does not support it.
bool has_f16c() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

}  // namespace

std::string_view name(Isa isa) noexcept { return names[static_cast<int>(isa)]; }

bool parse(std::string_view text, Isa* isa) noexcept {
  for (std::size_t i = 0; i < std::size(names); ++i) {
    if (names[i] == text) {
      *isa = static_cast<Isa>(i);
      return true;
    }
  }
  return false;
}

Isa widest_isa() noexcept {
#if defined(__x86_64__)
  static const Isa widest = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") && has_f16c();
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2"))
      return Isa::avx512;
    return avx2 ? Isa::avx2 : Isa::scalar;
  }();
  return widest;
#else
  return Isa::scalar;
#endif
}

Isa chosen_isa() noexcept {
  static const Isa chosen = []() noexcept {
    Isa isa = Isa::scalar;
    try {
      if (parse(Settings::get().text("BESTRIDE_FORCE=isa"), &isa) && isa < widest_isa()) return isa;
    } catch (...) {  // no memory to read the settings: use the default
    }
    return widest_isa();
  }();
  return chosen;
}

}  // namespace bestride::inline kernels
