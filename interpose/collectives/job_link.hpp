// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the link between two nodes in MPI_Init, for a job whose profile has no measured link. Without it the costs
// of 10 Gbit/s are assumed; on a slower link collectives were then left to the MPI library that send each byte several
// times.
#include <mpi.h>

#include <array>
#include <optional>

#include "base/mapped_allocator.hpp"
#include "model/topology.hpp"
#include "perfmodel/collective/link_probe.hpp"

namespace bestride::inline interpose {

/// Rank 0 measures, the lowest rank of node 1 answers, all others do nothing.
class JobLink {
 public:
  /// `world`: of MPI_COMM_WORLD, with two or more nodes. The two ranks allocate a buffer, if `wanted`.
  JobLink(const Topology& world, bool wanted) noexcept;
  /// False on one of the two ranks: there is no measurement, because it has no memory or does not want one.
  bool ready() const noexcept { return role_ == Role::none || buffer_; }
  /// Rank 0 and the rank that answers exchange messages; on `comm`, a duplicate of MPI_COMM_WORLD that returns errors.
  /// To be called on all ranks or on none; it does not wait for the others. The result is on rank 0.
  std::optional<LinkSpeed> measure(MPI_Comm comm) noexcept;

 private:
  enum class Role : unsigned char { none, measures, answers };
  Role role_ = Role::none;
  int peer_ = 0;
  MappedPtr<std::array<unsigned char, link_probe_bytes>> buffer_;
};

/// A broadcast from rank 0 in which a rank that waits sleeps. In MPI_Bcast waiting ranks would keep processors that the
/// two measuring ones need, if there are more ranks than processors.
int sleeping_bcast(void* data, int bytes, MPI_Comm comm) noexcept;

}  // namespace bestride::inline interpose
