// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `bestride calibrate` measured of collectives within one node: each through shared memory and by the MPI library.
// The section `one_node` of the profile file (docs/profile.md).
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include "perfmodel/collective/one_node.hpp"
#include "perfmodel/collective/shape.hpp"

namespace bestride::inline perfmodel {

/// The measured sizes: bytes as OneNodeBounds counts them.
inline constexpr std::array<std::int64_t, 8> one_node_bytes{8, 64, 512, 4096, 16'384, 65'536, 262'144, 1'048'576};

/// A call that is measured.
struct OneNodeCall {
  enum class Kind : std::uint8_t { barrier, collective, neighbors } kind = Kind::collective;
  Collective what{};     ///< of a collective
  bool blocking = true;  ///< also of the others
  /// One word, such as "allreduce", "nonblocking_allreduce", "barrier", "neighbor_alltoall".
  std::string id() const;
  /// A barrier has one size.
  std::size_t sizes() const noexcept { return kind == Kind::barrier ? 1 : one_node_bytes.size(); }
};
/// allgatherv is predicted as allgather. A neighbor collective is MPI_Neighbor_alltoall on a ring.
inline constexpr auto one_node_calls = [] {
  using enum Collective;
  constexpr std::array measured{broadcast, allgather, gather, scatter, alltoall, allreduce, reduce, reduce_scatter};
  std::array<OneNodeCall, 2 * measured.size() + 2> calls;
  calls[0].kind = OneNodeCall::Kind::barrier;
  calls[1].kind = OneNodeCall::Kind::neighbors;
  std::size_t next = 2;
  for (const bool blocking : {true, false})
    for (const Collective what : measured) calls[next++] = {OneNodeCall::Kind::collective, what, blocking};
  return calls;
}();

/// One call at each size, in seconds; NaN: not measured.
struct OneNodeCurve {
  static constexpr float unmeasured = std::numeric_limits<float>::quiet_NaN();
  OneNodeCurve() noexcept { shared.fill(unmeasured), library.fill(unmeasured); }
  std::array<float, one_node_bytes.size()> shared, library;

  bool any() const noexcept;
  /// The run of sizes that gains most through shared memory, a gain being the logarithm of the ratio of the times less
  /// 3 %, by which two measurements of one call differ. It begins at 0 if the smallest size gains and has no end if the
  /// largest does; sizes beyond it that were not measured are not in it.
  OneNodeBounds bounds() const noexcept;
};

struct OneNodeMeasurements {
  int ranks = 0;                                           ///< 0: nothing was measured
  std::array<OneNodeCurve, one_node_calls.size()> curves;  ///< of one_node_calls

  bool any() const noexcept { return ranks > 0; }
};

/// `otherwise`: of the calls that were not measured.
OneNodeLimits limits_of(const OneNodeMeasurements& measured, const OneNodeLimits& otherwise) noexcept;

}  // namespace bestride::inline perfmodel
