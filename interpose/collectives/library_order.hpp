// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the MPI library adds floating-point numbers of all ranks in an order in which Bestride can add them, too,
// that of a ReductionTree. If it does, Bestride's sum has the same bits as the library's.
//
// MPI does not define the order, so it is found out: after some calls with the same number of elements on a
// communicator, the library and Bestride both add numbers whose sum depends on the order, and the members compare the
// bits. The answer holds for that collective, root, type and number of elements on that communicator: an MPI library
// selects its algorithm by these (docs/decisions/library_order.md).
#include <mpi.h>

#include "collectives/core/reduction.hpp"
#include "interpose/collectives/comm_collectives.hpp"

namespace bestride::inline interpose {

struct Route;

/// A blocking call of MPI_Allreduce, or of MPI_Reduce with its root.
struct ReductionCall {
  Collective what;
  int root;  ///< 0 for MPI_Allreduce
  MPI_Op op;
  MPI_Datatype type;
  std::int64_t count;
};

/// True if the library's order of such reductions is found out, sooner or later.
bool finds_sum_order(const ReductionCall& call) noexcept;

/// Counts the call. nullptr: it is left to the MPI library, because its order is different or will be found out later,
/// if at all. All members call this with the same arguments, and get the same answer.
SumOrder* find_sum_order(CommEntry& entry, const ReductionCall& call) noexcept;

/// True if the library's order is that of a tree. At first this is found out, with two to 260 reductions on `comm`,
/// half of them over `route`; waits for the other members. The same answer on all of them.
bool same_sum_order(SumOrder& order, const ReductionCall& call, const Route& route, MPI_Comm comm, int rank,
                    int ranks) noexcept;

/// The tree of a sum whose order is known.
ReductionTree tree_of(const SumOrder& order, int ranks) noexcept;

}  // namespace bestride::inline interpose
