// SPDX-License-Identifier: Apache-2.0
#pragma once
// Members of a communicator that make different collective calls where MPI asks for the same one.
#include <vector>

#include "telemetry/waits/members.hpp"
#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// Looks at the collective calls in which ranks are now, and compares them with the calls of the same ordinal that
/// other members are in, have pending, or remember to have made. Compared are the function, the root, and
/// the bytes of broadcasts and reductions.
std::vector<CollectiveMismatch> find_mismatches(const Members& members);

}  // namespace bestride::inline telemetry
