// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measured times and counts as the profile file represents them. Private to the files that read and write it; may
// throw.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "perfmodel/profile/json_points.hpp"

namespace bestride::inline perfmodel {

/// Nanoseconds with four significant digits, null if not measured. Reading and writing again gives the same text.
inline Json number_of(double seconds) {
  if (!(seconds > 0)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", seconds * 1e9);
  return std::strtod(text, nullptr);
}

/// False unless the value is null or a time between 10^-15 s and 1000 s.
template <class Value>
bool read_number(const Json& value, Value* seconds) {
  *seconds = std::numeric_limits<Value>::quiet_NaN();
  if (value.is_null()) return true;
  if (!value.is_number()) return false;
  const double nanoseconds = value.get<double>();
  if (!(nanoseconds >= 1e-6 && nanoseconds <= 1e12)) return false;
  *seconds = static_cast<Value>(nanoseconds * 1e-9);
  return true;
}

template <class Row>
Json numbers_of(const Row& values) {
  Json row = Json::array();
  for (float value : values) row.push_back(number_of(static_cast<double>(value)));
  return row;
}

template <class Row>
bool read_numbers(const Json& row, Row* values) {
  if (!row.is_array() || row.size() != values->size()) return false;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!read_number(row[i], &(*values)[i])) return false;
  return true;
}

template <class Count>
bool read_count(const Json& value, Count least, Count most, Count* count) {
  if (!value.is_number_integer()) return false;
  const auto number = value.get<std::int64_t>();
  if (number < least || number > most) return false;
  *count = static_cast<Count>(number);
  return true;
}

}  // namespace bestride::inline perfmodel
