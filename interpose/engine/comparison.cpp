// SPDX-License-Identifier: Apache-2.0
#include "interpose/engine/comparison.hpp"

#include <cstring>

#include "base/message.hpp"
#include "interpose/objects/buffer_pool.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {

void say_difference(const char* what) noexcept {
  warn_once(what,
            "%s differs from the MPI library's own for a datatype; the MPI library's bytes are used; please report it",
            what);
}

void compare_packed(const Operations& library, void* state, std::size_t offset, void* packed,
                    std::size_t bytes) noexcept {
  const BufferLease theirs(runtime().pool, static_cast<std::int64_t>(bytes));
  if (!theirs || library.pack(state, offset, theirs.data(), bytes) != bytes) return;
  if (std::memcmp(packed, theirs.data(), bytes) == 0) return;
  std::memcpy(packed, theirs.data(), bytes);
  say_difference("packing");
}

void compare_unpacked(const Operations& library, void* state, std::size_t offset, const void* packed,
                      std::size_t bytes) noexcept {
  const BufferLease theirs(runtime().pool, static_cast<std::int64_t>(bytes));
  if (!theirs || library.pack(state, offset, theirs.data(), bytes) != bytes) return;
  if (std::memcmp(packed, theirs.data(), bytes) == 0) return;
  library.unpack(state, offset, packed, bytes);
  say_difference("unpacking");
}

}  // namespace bestride::inline interpose
