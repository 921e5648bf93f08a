// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a communicator that disagree on what one sends to the other in a collective call with different amounts.
#include <vector>

#include "telemetry/waits/collective_progress.hpp"
#include "telemetry/waits/members.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// Looks at the calls such as MPI_Alltoallv that all members have begun and, unless `also_ended`, in which a rank is
/// now or for which it has a request. O(ranks squared) for each.
std::vector<CollectiveMismatch> find_different_amounts(const Members& members, CollectiveProgress& progress,
                                                       bool also_ended);

}  // namespace bestride::inline telemetry
