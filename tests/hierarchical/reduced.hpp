// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random reductions. Those that use the hierarchy are compared with the fixed tree of collectives/core/reduction.hpp,
// computed here by MPI_Reduce_local; all others, bit by bit, with the MPI library's own call of the same form.
#include <cstdint>
#include <functional>
#include <string>

#include "tests/hierarchical/job.hpp"

namespace bestride::test {

/// The user's operations, made for as long as this lives.
class UserOperations {
 public:
  UserOperations();
  ~UserOperations();
  UserOperations(const UserOperations&) = delete;
  UserOperations& operator=(const UserOperations&) = delete;
  /// Of doubles, whose result shows the order; of int, associative only.
  MPI_Op commutative = MPI_OP_NULL, ordered = MPI_OP_NULL;
};

/// As move_at_random().
std::string reduce_at_random(std::uint64_t seed, const Groups& groups, const UserOperations& user, int least,
                             std::string* told, const std::function<void()>& tell);

}  // namespace bestride::test
