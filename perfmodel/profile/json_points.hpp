// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measured points as the profile file represents them. Private to the files that read and write it; may throw.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "perfmodel/host/cost_grid.hpp"

namespace bestride::inline perfmodel {

using Json = nlohmann::json;  // objects are sorted by key: dump() is the canonical form that is signed

/// Nanoseconds with four significant digits, null if not measured.
inline Json point(float log_seconds) {
  if (std::isnan(log_seconds)) return nullptr;
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", std::exp2(static_cast<double>(log_seconds)) * 1e9);
  return std::strtod(text, nullptr);
}

/// False unless the value is null or a time between 10 ps and 1000 s.
inline bool read_point(const Json& value, float* log_seconds) {
  *log_seconds = unmeasured;
  if (value.is_null()) return true;
  if (!value.is_number()) return false;
  const double nanoseconds = value.get<double>();
  if (!(nanoseconds >= 0.01 && nanoseconds <= 1e12)) return false;
  *log_seconds = static_cast<float>(std::log2(nanoseconds * 1e-9));
  return true;
}

template <class Row>
Json row_of(const Row& values) {
  Json row = Json::array();
  for (float value : values) row.push_back(point(value));
  return row;
}

template <class Row>
bool read_row(const Json& row, Row* values) {
  if (!row.is_array() || row.size() != values->size()) return false;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!read_point(row[i], &(*values)[i])) return false;
  return true;
}

/// Sets *value to the enumerator whose name() is `text`; false if there is none.
template <class Enum>
bool named(const Json& text, int count, Enum* value, int first = 0) {
  if (!text.is_string()) return false;
  for (int i = first; i < count; ++i)
    if (name(static_cast<Enum>(i)) == text.get_ref<const std::string&>()) {
      *value = static_cast<Enum>(i);
      return true;
    }
  return false;
}

}  // namespace bestride::inline perfmodel
