// SPDX-License-Identifier: Apache-2.0
#pragma once
// The predefined types of the expression language: their sizes, extents and gaps on this machine.
#include <cstdint>
#include <span>
#include <string_view>

namespace bestride {

struct NamedType {
  std::string_view name;    ///< the word in the language
  std::int64_t size;        ///< packed bytes
  std::int64_t extent;
  std::int64_t first;       ///< pair types: bytes of the first member at offset 0; else == size
  std::int64_t second_at;   ///< pair types: offset of the second member; else 0
  bool integer;             ///< a C integer type, of either sign; not wchar, which MPI counts apart
  std::int64_t alignment;   ///< what the C compiler gives; a struct's extent is padded to a multiple of it
};
std::span<const NamedType> named_types() noexcept;
/// nullptr: no such word.
const NamedType* find_named_type(std::string_view name) noexcept;

}  // namespace bestride
