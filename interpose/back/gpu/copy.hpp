// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bytes of a layout between memory the GPU reaches and the same places in host memory. Waits until they are there.
//
// A contiguous layout is one copy by the driver. Any other is packed by a kernel into page-locked memory and unpacked by the CPU's Packer,
// or the other way round. Where there is no kernel, no page-locked memory, or the bytes lie in memory of several kinds, every block is
// copied on its own: slow, but right. Bytes of gaps are neither read nor written on the device.
#include "base/result.hpp"
#include "interpose/back/gpu/place.hpp"
#include "kernels/cuda/driver.hpp"

namespace bestride {

/// From `place`, which is of (user, layout), to `mirror`: the address that stands for `user`. Error: no context, the device is dead, a copy
/// failed. Thread-safe; may be called at the same time for other buffers.
Result<cuda::Done> copy_to_host(const Place& place, const void* user, void* mirror) noexcept;
/// The other way. After an error some bytes may have been written.
Result<cuda::Done> copy_to_device(const Place& place, void* user, const void* mirror) noexcept;

}  // namespace bestride
