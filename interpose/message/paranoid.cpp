// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/paranoid.hpp"

#include <climits>
#include <cstring>

#include "interpose/engine/comparison.hpp"
#include "interpose/mpi/quirks.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// What MPI packs from `user`, in a pooled buffer; empty on failure.
BufferLease packed_by_mpi(std::int64_t bytes, const void* user, std::int64_t count, MPI_Datatype type) noexcept {
  const MPI_Comm comm = runtime().paranoid_comm();
  if (type == MPI_DATATYPE_NULL || comm == MPI_COMM_NULL || (quirks::pack_rejects_bottom && user == MPI_BOTTOM) ||
      bytes > INT_MAX || count > INT_MAX)
    return {};
  BufferLease lease(runtime().pool, bytes);
  int position = 0;
  if (lease && (real.Pack(user, static_cast<int>(count), type, lease.data(), static_cast<int>(bytes), &position,
                          comm) != MPI_SUCCESS ||
                position != bytes))
    lease.release();
  return lease;
}

}  // namespace

void check_packed(std::byte* packed, std::int64_t bytes, const void* user, std::int64_t count,
                  MPI_Datatype type) noexcept {
  const BufferLease theirs = packed_by_mpi(bytes, user, count, type);
  if (!theirs || std::memcmp(packed, theirs.data(), static_cast<std::size_t>(bytes)) == 0) return;
  std::memcpy(packed, theirs.data(), static_cast<std::size_t>(bytes));
  say_difference("packing");
}

void check_unpacked(std::byte* packed, std::int64_t bytes, void* user, std::int64_t count, MPI_Datatype type) noexcept {
  const BufferLease theirs = packed_by_mpi(bytes, user, count, type);
  if (!theirs || std::memcmp(packed, theirs.data(), static_cast<std::size_t>(bytes)) == 0) return;
  int position = 0;
  real.Unpack(packed, static_cast<int>(bytes), &position, user, static_cast<int>(count), type,
              runtime().paranoid_comm());
  say_difference("unpacking");
}

}  // namespace bestride::inline interpose
