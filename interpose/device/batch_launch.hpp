// SPDX-License-Identifier: Apache-2.0
#pragma once
// The part of a TransferBatch that runs on one device: which operations are enqueued, and in which order.
#include <span>

#include "interpose/device/transfer_batch.hpp"

namespace bestride::inline interpose {

/// Moves the parts and waits. All parts must be on `device` and fast(). All parts but the pipelined ones share one
/// launch. Returns false after an error, which is reported: no transfer is in flight then, and it is not known which
/// bytes have moved.
bool launch_all(const cuda::DevicePtr& device, std::span<TransferPart* const> parts) noexcept;

/// Drops the cached sequences (graph_cache.hpp). Call at the end of the MPI job.
void clear_graphs() noexcept;

}  // namespace bestride::inline interpose
