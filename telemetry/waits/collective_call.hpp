// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the members of a communicator have to agree on in a collective call.
#include <cstdint>
#include <string>

#include "telemetry/waits/wait_graph.hpp"

namespace bestride::inline telemetry {

/// Which collective call of a communicator.
struct CollectiveInstance {
  std::uint64_t communicator = 0;  ///< uid
  std::uint32_t ordinal = 0;
  auto operator<=>(const CollectiveInstance&) const = default;
};

/// The members of CollectiveMismatch::Variant; what need not agree is left out (no_rank, 0).
struct CollectiveCall {
  std::uint16_t function = no_function;
  std::int32_t root = no_rank;
  std::uint64_t bytes = 0;
  std::uint16_t reduction = 0;

  /// `root`, `bytes`, `operation`: of the record of a call or request.
  static CollectiveCall of(std::uint16_t function, std::int32_t root, std::uint64_t bytes, std::uint16_t operation);
  /// False if MPI does not permit that two members make these calls as the same one.
  bool may_match(const CollectiveCall& other) const;
};

/// Adds a rank to the variant of its call; a new variant if there is none. A rank is in the variant of its last call.
void add_to_variants(std::vector<CollectiveMismatch::Variant>& variants, const CollectiveCall& call, std::int32_t rank);
/// The variant of most ranks first.
void sort_variants(std::vector<CollectiveMismatch::Variant>& variants);

/// True if all variants of a mismatch call the same function, and differ in their arguments only.
bool is_one_function(const CollectiveMismatch& mismatch);

/// "rank 1 sends 8 B to rank 2, which expects 16 B".
std::string pair_text(const CollectiveMismatch::Pair& pair);
/// "MPI_Bcast root 3 of 8 B", "MPI_Allreduce MPI_SUM of integers".
std::string variant_text(const CollectiveMismatch::Variant& variant);

}  // namespace bestride::inline telemetry
