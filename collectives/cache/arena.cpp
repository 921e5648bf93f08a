// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/arena.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/message.hpp"

namespace bestride::inline collectives {

Arena::Arena(std::byte* memory, std::int64_t bytes, int file)
    : memory_(memory),
      bytes_(bytes),
      file_(file),
      reserved_(file < 0 ? 0 : static_cast<std::size_t>((bytes + chunk - 1) / chunk)) {}

bool Arena::reserve(std::int64_t offset, std::int64_t bytes) noexcept {
  if (!has(offset, bytes)) return false;
  if (file_ < 0) return true;
  for (std::int64_t i = offset / chunk; i * chunk < offset + bytes; ++i) {
    if (reserved_[static_cast<std::size_t>(i)]) continue;
    int result;
    while ((result = fallocate(file_, 0, i * chunk, std::min(chunk, bytes_ - i * chunk))) != 0 && errno == EINTR) {
    }
    if (result != 0) {
      warn_once("arena",
                "no memory to keep results of allgathers in; repeated ones cross the network again "
                "(BESTRIDE_CACHE_BYTES sets how much is asked for)");
      return false;
    }
    reserved_[static_cast<std::size_t>(i)] = true;
  }
  return true;
}

}  // namespace bestride::inline collectives
