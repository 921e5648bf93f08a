// SPDX-License-Identifier: Apache-2.0
#pragma once
// Selects the NIC for this rank's messages to other hosts, through the environment variable of the MPI library's
// network layer (docs/topology.md).

namespace bestride::inline interpose {

/// Called before MPI_Init or MPI_Session_init. Follows BESTRIDE_NICS or the profile, which the runtime has read before.
/// Only the first call has an effect, and only if the launcher gives this rank's local rank on its host. Variables that
/// the user has set are unchanged. The selection is permanent: changing the environment once the MPI library has
/// threads would race with their reads.
void select_rail() noexcept;

}  // namespace bestride::inline interpose
