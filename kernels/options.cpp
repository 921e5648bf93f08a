// SPDX-License-Identifier: Apache-2.0
// The names of kernel families and instruction sets, and which of them this machine and its user's settings allow.
#include "base/variables.hpp"
#include "kernels/program.hpp"

namespace bestride {
namespace {

constexpr std::string_view family_names[] = {"automatic", "reference", "block_copy", "word",      "overlap",  "wide",
                                             "gather",    "record",    "list",       "transpose", "streaming"};
constexpr std::string_view isa_names[] = {"scalar", "avx2", "avx512"};

template <class Enum, std::size_t N>
bool find(const std::string_view (&names)[N], std::string_view text, Enum* value) noexcept {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) {
      *value = static_cast<Enum>(i);
      return true;
    }
  }
  return false;
}

}  // namespace

std::string_view name(KernelFamily family) noexcept { return family_names[static_cast<int>(family)]; }
std::string_view name(Isa isa) noexcept { return isa_names[static_cast<int>(isa)]; }
bool parse(std::string_view text, KernelFamily* family) noexcept { return find(family_names, text, family); }
bool parse(std::string_view text, Isa* isa) noexcept { return find(isa_names, text, isa); }

Isa widest_isa() noexcept {
#if defined(__x86_64__)
  static const Isa widest = [] {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
        __builtin_cpu_supports("bmi2"))
      return Isa::avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) return Isa::avx2;
    return Isa::scalar;
  }();
  return widest;
#else
  return Isa::scalar;
#endif
}

const KernelTable& kernels_for(Isa isa) noexcept {
#if defined(__x86_64__)
  // A wider instruction set than the CPU has is never run, whatever was asked for.
  if (isa > widest_isa()) isa = widest_isa();
  if (isa == Isa::avx512) return avx512_kernels();
  if (isa == Isa::avx2) return avx2_kernels();
#endif
  return scalar_kernels();
}

PackerOptions PackerOptions::from_settings() {
  static const PackerOptions options = [] {
    const Settings& settings = Settings::get();
    PackerOptions chosen;
    Isa isa;
    if (parse(settings.text("BESTRIDE_KERNEL_ISA"), &isa) && isa < chosen.isa) chosen.isa = isa;
    parse(settings.text("BESTRIDE_KERNEL"), &chosen.family);
    bool ok = false;
    const std::int64_t from = parse_size(settings.text("BESTRIDE_STREAMING_FROM"), &ok);
    if (ok) chosen.streaming_from = from;
    return chosen;
  }();
  return options;
}

}  // namespace bestride
