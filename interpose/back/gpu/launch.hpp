// SPDX-License-Identifier: Apache-2.0
#pragma once
// One device's share of a Together: what is enqueued on it, in which order.
#include <span>

#include "interpose/back/gpu/together.hpp"

namespace bestride {

/// Moves the parts, all of one device and fast(), and waits. One launch for all but the pipelined ones. False: something went wrong, which is
/// said; nothing is under way any more, and what has moved is not known.
bool launch_all(const cuda::DevicePtr& device, std::span<Part* const> parts) noexcept;

/// Forgets the sequences that were kept for being enqueued again. At the end of the MPI job.
void forget_sequences() noexcept;

}  // namespace bestride
