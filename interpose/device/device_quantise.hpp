// SPDX-License-Identifier: Apache-2.0
#pragma once
// Numbers in device memory and their quantised codes in host memory (docs/quantised.md). The device encodes and decodes
// the numbers, so that only codes are copied.
#include <cstdint>
#include <span>

#include "interpose/device/staging.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride {

/// A run of consecutive packed numbers whose codes are consecutive, too.
struct NumberRun {
  std::int64_t first = 0, count = 0;  ///< in numbers, from the first packed number
  std::int64_t codes = 0;             ///< byte offset of the run's codes in the copied codes; a multiple of 8
};

/// Moves the codes of `runs` (ascending, at least one) of `numbers`, which must have a device layout. Direction pack:
/// the device makes the codes and they are copied to host memory. Direction unpack: the codes are copied from host
/// memory and the device decodes them. `codes`: `bytes` bytes of host memory, preferably page-locked. Waits. After an
/// Error nothing is in flight, and it is not known what was written. Thread-safe.
Result<cuda::Done> move_codes(const Staging& numbers, Direction direction, NumberFormat format, CodeBits bits,
                              std::span<const NumberRun> runs, std::byte* codes, std::int64_t bytes) noexcept;

/// True if the device supports it and it is predicted to take less time than moving plain numbers. `code_bytes`: the
/// codes of all of `numbers`.
bool codes_pay(const Staging& numbers, Direction direction, std::int64_t code_bytes, int runs) noexcept;

}  // namespace bestride
