// SPDX-License-Identifier: Apache-2.0
#pragma once
// Copies from the memory of another process of the same user, by the kernel (process_vm_readv).
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "collectives/core/operand.hpp"

namespace bestride::inline collectives {

/// Copies `bytes` bytes from `address` in process `process` to the packed bytes [at, at + bytes) of `to`. `between`:
/// between_bytes bytes, used if `to` is not contiguous. False: the kernel has refused, or the memory is not readable;
/// a part may have been copied. Thread-safe.
bool copy_from_process(pid_t process, std::uint64_t address, const Operand& to, std::int64_t at, std::int64_t bytes,
                       std::byte* between) noexcept;
inline constexpr std::int64_t between_bytes = 64 * 1024;

}  // namespace bestride::inline collectives
