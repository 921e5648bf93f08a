// SPDX-License-Identifier: Apache-2.0
#include "collectives/cache/arena.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/message.hpp"

namespace bestride {

bool Arena::reserve(std::int64_t offset, std::int64_t bytes) noexcept {
  const std::int64_t end = offset + bytes;
  if (!memory_ || end > bytes_) return false;
  if (file_ < 0 || end <= reserved_) return true;
  int result;
  while ((result = fallocate(file_, 0, reserved_, end - reserved_)) != 0 && errno == EINTR) {
  }
  if (result != 0) {
    say_once("arena", "no memory to keep results of allgathers in; repeated ones cross the network again (BESTRIDE_CACHE_BYTES sets how much is asked for)");
    return false;
  }
  reserved_ = end;
  return true;
}

}  // namespace bestride
