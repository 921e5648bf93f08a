// SPDX-License-Identifier: Apache-2.0
#include "telemetry/record/printable.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>

namespace bestride::inline telemetry {
namespace {

/// Unicode 15: the categories Cc, Cf, Zl and Zp, and fillers that are not seen. Ascending.
constexpr struct Range {
  char32_t first, last;
} unseen[] = {
    {0x0000, 0x001f},   {0x007f, 0x009f},   {0x00ad, 0x00ad},   {0x034f, 0x034f},   {0x0600, 0x0605},
    {0x061c, 0x061c},   {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},   {0x08e2, 0x08e2},
    {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff9, 0xfffb},
    {0x110bd, 0x110bd}, {0x110cd, 0x110cd}, {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
    {0xe0000, 0xe0fff},
};

bool is_unseen(char32_t character) {
  const Range* const range = std::upper_bound(std::begin(unseen), std::end(unseen), character,
                                              [](char32_t c, const Range& each) { return c < each.first; });
  return range != std::begin(unseen) && character <= range[-1].last;
}

struct Character {
  char32_t value;
  std::size_t length;
};
/// The first character; a byte that begins none is one of its own.
Character first_of(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : byte(0) >= 0xc0 ? 2 : 1;
  char32_t value = length == 1 ? byte(0) : byte(0) & (0xffu >> (length + 1));
  if (length > text.size()) return {byte(0), 1};
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {byte(0), 1};
    value = value << 6 | (byte(i) & 0x3fu);
  }
  return {value, length};
}

}  // namespace

std::string printable(const std::string& text, char kept) {
  std::string result;
  for (std::string_view rest = text; !rest.empty();) {
    const auto [value, length] = first_of(rest);
    if (is_unseen(value) && (length > 1 || rest[0] != kept))
      result += '?';
    else
      result += rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

}  // namespace bestride::inline telemetry
