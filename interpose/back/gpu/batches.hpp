// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches kept for being launched again: a program exchanges the same halo again and again, and encoding it costs more than the launch.
#include <memory>
#include <span>

#include "kernels/cuda/batch.hpp"

namespace bestride {

/// The batch of these items, made now or before. Thread-safe.
Result<std::shared_ptr<const cuda::Batch>> find_batch(const cuda::DevicePtr& device, std::span<const cuda::BatchItem> items) noexcept;

}  // namespace bestride
