// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/maximum.hpp"

#include <algorithm>
#include <cstdint>

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

MPI_Op operation = MPI_OP_NULL;

extern "C" void take_larger(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* const from = static_cast<const std::int64_t*>(in);
  auto* const to = static_cast<std::int64_t*>(inout);
  for (int i = 0; i < *count; ++i) to[i] = std::max(to[i], from[i]);
}

}  // namespace

MPI_Op maximum() noexcept { return operation; }

bool make_maximum() noexcept { return real.Op_create(&take_larger, 1, &operation) == MPI_SUCCESS; }

void free_maximum() noexcept {
  if (operation != MPI_OP_NULL) real.Op_free(&operation);
}

bool on_all_members(MPI_Comm comm, bool good) noexcept {
  const std::int64_t bad = !good;
  std::int64_t any = 1;
  return real.Allreduce(&bad, &any, 1, MPI_INT64_T, maximum(), comm) == MPI_SUCCESS && !any;
}

}  // namespace bestride::inline interpose
