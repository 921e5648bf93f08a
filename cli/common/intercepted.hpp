// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which MPI functions the library handles. The list is interpose/preload/functions.tsv, embedded at build time, so that
// the doctor does not need to load a backend.
#include <string>

namespace bestride::inline cli {

/// How the library handles a call of `name` (MPI_X or PMPI_X): "accelerate", "complete" (starts or completes requests),
/// "track" (creates or frees a handle), "collective" (may be accelerated within one node and over several, or with a
/// GPU; otherwise it goes directly to the MPI library); "" if the call goes directly to the MPI library.
std::string handling_of(const std::string& name);

}  // namespace bestride::inline cli
