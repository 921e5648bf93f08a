// SPDX-License-Identifier: Apache-2.0
#pragma once
// The predefined types of the expression language: their sizes, extents and gaps on this machine.
#include <cstdint>
#include <span>
#include <string_view>

namespace bestride::inline datatype {

struct NamedType {
  std::string_view name;  ///< the name in the language
  std::int64_t size;      ///< packed bytes
  std::int64_t extent;
  std::int64_t first;      ///< pair types: bytes of the first member at offset 0; else == size
  std::int64_t second_at;  ///< pair types: offset of the second member; else 0
  bool integer;            ///< a C integer type, signed or unsigned; not wchar, which MPI treats as another kind
  std::int64_t alignment;  ///< as the C compiler aligns it; a struct's extent is padded to a multiple of it
};
std::span<const NamedType> named_types() noexcept;
/// nullptr if there is no such name.
const NamedType* find_named_type(std::string_view name) noexcept;

}  // namespace bestride::inline datatype
