// SPDX-License-Identifier: Apache-2.0
#include "datatype/named.hpp"

#include <array>
#include <complex>
#include <cstddef>
#include <cwchar>
#include <type_traits>

namespace bestride::inline datatype {
namespace {

template <class First, class Second>
struct Pair {
  First first;
  Second second;
};

template <class T>
constexpr NamedType plain(std::string_view name) {
  return {name, sizeof(T), sizeof(T), sizeof(T), 0, std::is_integral_v<T> && !std::is_same_v<T, wchar_t>, alignof(T)};
}

/// The gap between the members and the padding at the end belong to the extent, not to the size.
template <class First, class Second>
constexpr NamedType pair(std::string_view name) {
  using Both = Pair<First, Second>;
  return {name,         sizeof(First) + sizeof(Second), sizeof(Both), sizeof(First), offsetof(Both, second), false,
          alignof(Both)};
}

constexpr std::array all_named_types = {
    plain<std::byte>("byte"),
    plain<char>("packed"),
    plain<char>("char"),
    plain<signed char>("signed_char"),
    plain<unsigned char>("unsigned_char"),
    plain<bool>("bool"),
    plain<wchar_t>("wchar"),
    plain<short>("short"),
    plain<unsigned short>("unsigned_short"),
    plain<int>("int"),
    plain<unsigned>("unsigned"),
    plain<long>("long"),
    plain<unsigned long>("unsigned_long"),
    plain<long long>("long_long"),
    plain<unsigned long long>("unsigned_long_long"),
    plain<std::int8_t>("int8"),
    plain<std::int16_t>("int16"),
    plain<std::int32_t>("int32"),
    plain<std::int64_t>("int64"),
    plain<std::uint8_t>("uint8"),
    plain<std::uint16_t>("uint16"),
    plain<std::uint32_t>("uint32"),
    plain<std::uint64_t>("uint64"),
    plain<std::ptrdiff_t>("aint"),
    plain<long long>("count"),
    plain<long long>("offset"),
    plain<float>("float"),
    plain<double>("double"),
    plain<long double>("long_double"),
    plain<std::complex<float>>("complex"),
    plain<std::complex<double>>("double_complex"),
    plain<std::complex<long double>>("long_double_complex"),
    pair<float, int>("float_int"),
    pair<double, int>("double_int"),
    pair<long, int>("long_int"),
    pair<short, int>("short_int"),
    pair<int, int>("2int"),
    pair<long double, int>("long_double_int"),
};

}  // namespace

std::span<const NamedType> named_types() noexcept { return all_named_types; }

const NamedType* find_named_type(std::string_view name) noexcept {
  for (const NamedType& type : all_named_types)
    if (type.name == name) return &type;
  return nullptr;
}

}  // namespace bestride::inline datatype
