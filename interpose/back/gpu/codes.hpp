// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers in device memory and their codes in host memory (docs/quantised.md): coded and read on the device, so that only codes are
// copied.
#include <cstdint>
#include <span>

#include "interpose/back/gpu/staging.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// Numbers that stand together, packed, and whose codes do.
struct NumberRun {
  std::int64_t first = 0, count = 0;  ///< numbers, from the first packed one on
  std::int64_t codes = 0;             ///< byte at which the codes begin, of those that are copied: a multiple of 8
};

/// Of `numbers`, which has a plan, the runs (ascending, at least one), packed: codes of them are made on the device and copied to
/// host memory; unpacked: copied from there and read on the device. `codes`: so many bytes of host memory, best page-locked. Waits.
/// After an Error nothing is under way; what was written is not known. Thread-safe.
Result<cuda::Done> move_codes(const Staging& numbers, cuda::Direction direction, NumberFormat format, CodeBits bits,
                              std::span<const NumberRun> runs, std::byte* codes, std::int64_t bytes) noexcept;

/// The device can, and is predicted to take less time so than plain numbers would. `code_bytes`: of all of `numbers`.
bool codes_pay(const Staging& numbers, cuda::Direction direction, std::int64_t code_bytes, int runs) noexcept;

}  // namespace bestride
