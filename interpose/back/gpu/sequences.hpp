// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sequences kept for being enqueued again: a program exchanges the same halo again and again, and encoding it costs more than the launch.
// What is repeated becomes a CUDA graph where that was measured to be faster.
#include <memory>

#include "kernels/cuda/sequence.hpp"

namespace bestride {

/// The sequence of these items, made now or before. Thread-safe.
Result<std::shared_ptr<cuda::Sequence>> find_sequence(const cuda::DevicePtr& device, cuda::SequenceItems items) noexcept;

}  // namespace bestride
