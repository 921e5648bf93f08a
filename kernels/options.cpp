// SPDX-License-Identifier: Apache-2.0
// The names of kernel families, and the options from the user's settings.
#include "base/variables.hpp"
#include "kernels/program.hpp"

namespace bestride::inline kernels {
namespace {

constexpr std::string_view family_names[] = {"automatic", "reference", "block_copy", "word",      "overlap",  "wide",
                                             "gather",    "record",    "list",       "transpose", "streaming"};

}  // namespace

std::string_view name(KernelFamily family) noexcept { return family_names[static_cast<int>(family)]; }

bool parse(std::string_view text, KernelFamily* family) noexcept {
  for (std::size_t i = 0; i < std::size(family_names); ++i) {
    if (family_names[i] == text) {
      *family = static_cast<KernelFamily>(i);
      return true;
    }
  }
  return false;
}

const KernelTable& kernels_for(Isa isa) noexcept {
#if defined(__x86_64__)
  // An instruction set wider than the CPU's is never used, whatever was requested.
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
    chosen.isa = chosen_isa();
    parse(settings.text("BESTRIDE_FORCE=kernel"), &chosen.family);
    bool ok = false;
    const std::int64_t from = parse_size(settings.text("BESTRIDE_FORCE=streaming_from"), &ok);
    if (ok) chosen.streaming_from = from;
    return chosen;
  }();
  return options;
}

}  // namespace bestride::inline kernels
