// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cache of sequences of device operations. A program repeats the same halo exchange, and encoding the sequence costs
// more than the launch. A repeated sequence becomes a CUDA graph if that was measured to be faster.
#include <memory>

#include "kernels/cuda/launch/sequence.hpp"

namespace bestride::inline interpose {

/// The sequence for these items, from the cache or newly made. Thread-safe.
Result<std::shared_ptr<cuda::Sequence>> find_or_make_graph(const cuda::DevicePtr& device,
                                                           cuda::SequenceItems items) noexcept;

}  // namespace bestride::inline interpose
