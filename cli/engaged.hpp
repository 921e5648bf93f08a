// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which MPI functions the library has something to say about: interpose/surface/functions.tsv, embedded when this is built, so
// that the doctor opens no back to ask it.
#include <string>

namespace bestride {

/// What the library makes of a call of `name` (MPI_X or PMPI_X): "accelerate", "settle" (starts or completes requests), "track"
/// (life of a handle); "" if it goes straight to the MPI library.
std::string handling_of(const std::string& name);

}  // namespace bestride
