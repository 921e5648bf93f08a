// SPDX-License-Identifier: Apache-2.0
#pragma once
// The MPI functions by number, as records name them: the lines of interpose/preload/functions.tsv, from 0. Embedded at
// build time.
#include <cstdint>
#include <span>

namespace bestride::inline telemetry {

struct RecordedFunction {
  const char* name;   ///< "MPI_Allreduce"
  const char* group;  ///< "collective-blocking": second column of functions.tsv
};

std::span<const RecordedFunction> recorded_functions() noexcept;
/// A hash of all names in order; a record file with another value was written with another table.
std::uint32_t recorded_functions_hash() noexcept;

}  // namespace bestride::inline telemetry
