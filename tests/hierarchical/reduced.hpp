// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random reductions. Those that use the hierarchy are compared with the fixed tree of collectives/core/reduction.hpp,
// computed here by MPI_Reduce_local; all others, bit by bit, with the MPI library's own call of the same form.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/hierarchical/job.hpp"

namespace bestride::test {

/// User-defined operations, which exist as long as this object.
class UserOperations {
 public:
  UserOperations();
  ~UserOperations();
  UserOperations(const UserOperations&) = delete;
  UserOperations& operator=(const UserOperations&) = delete;
  /// `commutative`: for doubles, with a result that depends on the order. `ordered`: for ints, only associative.
  MPI_Op commutative = MPI_OP_NULL, ordered = MPI_OP_NULL;
};

/// Like move_at_random(), for reductions.
std::string reduce_at_random(std::uint64_t seed, const Groups& groups, const UserOperations& user, int least,
                             std::string* told, const std::function<void()>& tell);

}  // namespace bestride::test
