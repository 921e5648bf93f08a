// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which loaded objects are not the program's own.
#include <string_view>

namespace bestride::inline telemetry {

inline std::string_view file_name_of(std::string_view path) noexcept { return path.substr(path.rfind('/') + 1); }
inline bool is_bestride_library(std::string_view path) noexcept {
  return file_name_of(path).starts_with("libbestride");
}
/// An MPI library, with its Fortran and C++ layers, which make calls for the program; or this library.
inline bool is_mpi_library(std::string_view path) noexcept {
  const std::string_view name = file_name_of(path);
  return name.starts_with("libmpi") || name.starts_with("libpmpi") || name.starts_with("libfmpich") ||
         is_bestride_library(path);
}

}  // namespace bestride::inline telemetry
