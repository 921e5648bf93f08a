// SPDX-License-Identifier: Apache-2.0
#include "perfmodel/host/strategy.hpp"

#include <array>

namespace bestride::inline perfmodel {
namespace {

constexpr std::array<std::string_view, strategy_count> strategies{"forward", "respell", "pack"};
constexpr std::array<std::string_view, call_kind_count> kinds{"pack", "unpack", "send", "receive", "isend", "irecv"};

template <class Enum, std::size_t n>
bool find(const std::array<std::string_view, n>& names, std::string_view text, Enum* value) noexcept {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == text) {
      *value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

}  // namespace

std::string_view name(Strategy strategy) noexcept { return strategies[static_cast<std::size_t>(strategy)]; }
std::string_view name(CallKind kind) noexcept { return kinds[static_cast<std::size_t>(kind)]; }
bool parse(std::string_view text, Strategy* strategy) noexcept { return find(strategies, text, strategy); }
bool parse(std::string_view text, CallKind* kind) noexcept { return find(kinds, text, kind); }

}  // namespace bestride::inline perfmodel
