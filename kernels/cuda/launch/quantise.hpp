// SPDX-License-Identifier: Apache-2.0
#pragma once
// Quantisation on the device: produces the same bytes as kernels/quantise/quantise.hpp.
//
// Each function is one launch and does not wait. The memory must stay valid until the stream has completed the launch,
// and the two buffers must not overlap. Numbers are aligned to their size, codes to 8 bytes; both are in device,
// managed or pinned memory. Error: other alignment, a count above 2^40, no kernels in this build, the context is gone.
// Thread-safe.
#include "kernels/cuda/device/device.hpp"
#include "kernels/quantise/format.hpp"

namespace bestride::cuda {

/// Writes quantised_bytes(count, format, bits) bytes to `codes`.
Result<Done> quantise(Device& device, Address numbers, NumberFormat format, std::int64_t count, CodeBits bits,
                      Address codes, StreamHandle stream) noexcept;

/// Writes `count` numbers; `format` as for bestride::dequantise.
Result<Done> dequantise(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format,
                        Address numbers, StreamHandle stream) noexcept;

/// Adds the numbers to an accumulator of float32, or of float64 if that was quantised; Error for other formats. If
/// several NaN meet in a sum, it is unspecified which one results.
Result<Done> dequantise_add(Device& device, Address codes, CodeBits bits, std::int64_t count, NumberFormat format,
                            Address accumulator, StreamHandle stream) noexcept;

}  // namespace bestride::cuda
