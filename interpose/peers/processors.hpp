// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many processors the ranks of a host may use. With fewer processors than ranks the host is crowded: a rank that
// waits by spinning takes the processor from the rank that it waits for.

namespace bestride::inline interpose {

/// The number of processors that at least one rank may use. On several hosts, processors with the same number count as
/// one, so the result is at least the number on each host. 0: unknown. Collective over MPI_COMM_WORLD if `all_ranks`,
/// and then the same on all ranks. Otherwise known only if this rank may use every processor that is online.
int processors_of_ranks(bool all_ranks) noexcept;

}  // namespace bestride::inline interpose
