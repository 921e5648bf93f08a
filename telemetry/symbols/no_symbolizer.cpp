// SPDX-License-Identifier: Apache-2.0
// The Symbolizer of a build without libdw.
#include "telemetry/symbols/symbolizer.hpp"

namespace bestride::inline telemetry {

struct Symbolizer::Modules {};

Symbolizer::Symbolizer() = default;
Symbolizer::~Symbolizer() = default;
bool Symbolizer::available() noexcept { return false; }

SymbolLookup Symbolizer::find(const std::string&, std::span<const std::uint8_t>, std::uint64_t) {
  return {{}, "this build of bestride can't read symbols (libdw was not found when it was made)"};
}

}  // namespace bestride::inline telemetry
