// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks a buffer address before it is dereferenced.
#include <mpi.h>

#include <cstdint>

#include "datatype/layout.hpp"

namespace bestride::inline interpose {

/// True if the memory that MPI would read or write has a plausible address: `user` is not a null pointer with a
/// relative type, nor one of MPI's special addresses.
inline bool address_is_plausible(const void* user, const Layout& layout) noexcept {
  constexpr std::int64_t first_page = 4096;
  return user != MPI_IN_PLACE && reinterpret_cast<std::int64_t>(user) + layout.low() >= first_page;
}

}  // namespace bestride::inline interpose
