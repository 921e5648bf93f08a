// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/functions.hpp"

namespace bestride::inline telemetry {
namespace {

constexpr RecordedFunction functions[] = {
#include "recorded_functions.inc"
};

constexpr std::uint32_t hash_of_names() noexcept {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const RecordedFunction& function : functions)
    for (const char* c = function.name;; ++c) {
      hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
      if (!*c) break;
    }
  return hash;
}

}  // namespace

std::span<const RecordedFunction> recorded_functions() noexcept { return functions; }
std::uint32_t recorded_functions_hash() noexcept {
  static constexpr std::uint32_t hash = hash_of_names();
  return hash;
}

}  // namespace bestride::inline telemetry
