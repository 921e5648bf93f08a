// SPDX-License-Identifier: Apache-2.0
#include "collectives/one_node/process_copy.hpp"

#include <sys/uio.h>

#include <algorithm>

namespace bestride::inline collectives {

bool copy_from_process(pid_t process, std::uint64_t address, const Operand& to, std::int64_t at, std::int64_t bytes,
                       std::byte* between) noexcept {
  for (std::int64_t done = 0; done < bytes;) {
    std::byte* const place = to.at(at + done);
    const iovec here{place ? place : between,
                     static_cast<std::size_t>(place ? bytes - done : std::min(between_bytes, bytes - done))};
    const iovec there{reinterpret_cast<void*>(address + static_cast<std::uint64_t>(done)), here.iov_len};
    const ssize_t copied = process_vm_readv(process, &here, 1, &there, 1, 0);
    if (copied <= 0) return false;
    if (!place) to.write(between, at + done, at + done + copied);
    done += copied;
  }
  return true;
}

}  // namespace bestride::inline collectives
