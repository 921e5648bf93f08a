// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantisation in memory a device reaches: the bytes of kernels/quantise/quantise.hpp, made on the device.
//
// One launch each. Nothing waits; the memory must stay until the stream is through, and both sides must not overlap. Numbers lie
// at multiples of their size, codes at multiples of 8, in device, managed or pinned memory. Error: another alignment, a count of more than
// 2^40, no kernels in this build, the context is gone. Thread-safe.
#include "kernels/cuda/device.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride::cuda {

/// Writes quantised_bytes(count, format, bits) bytes to `codes`.
Result<Done> quantise(Device& device, Address numbers, NumberFormat format, std::int64_t count, CodeBits bits, Address codes,
                      StreamHandle stream) noexcept;

/// Writes `count` numbers; `format` as for bestride::dequantise.
Result<Done> dequantise(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format, Address numbers,
                        StreamHandle stream) noexcept;

/// Adds them to an accumulator of float32, or of float64 if that is what was quantised; Error for other formats. Which of several NaN
/// stands in a sum is the device's choice.
Result<Done> dequantise_add(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format, Address accumulator,
                            StreamHandle stream) noexcept;

}  // namespace bestride::cuda
