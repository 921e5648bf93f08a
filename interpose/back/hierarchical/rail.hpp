// SPDX-License-Identifier: Apache-2.0
#pragma once
// The NIC that this rank's messages to other hosts take: handed to the transport by its own environment variable (docs/topology.md).

namespace bestride {

/// Before MPI_Init or MPI_Session_init: follows BESTRIDE_RAILS, or the profile, which the runtime has read by then. Only the first call does anything, and it only where the launcher says
/// which of its host's ranks this is. A variable that the user has set stays. What is set stays set: changing the environment once the
/// MPI library has threads would race with their reading of it.
void take_a_rail() noexcept;

}  // namespace bestride
