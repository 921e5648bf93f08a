// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpRegistry: the application's user-defined operations, from MPI_Op_create to a successful MPI_Op_free. An operation
// that is not in the registry is predefined, invalid or null. So no handle is passed to the MPI library for a query,
// which would raise an error for an invalid one.
#include <mpi.h>

#include <atomic>

#include "interpose/mpi/handle_table.hpp"

namespace bestride::inline interpose {

class OpRegistry {
 public:
  /// True if `op` is a user-defined operation that commutes. Any thread.
  bool commutative(MPI_Op op) const noexcept;
  /// True if `op` is known as a user-defined operation.
  bool known(MPI_Op op) const noexcept { return op != MPI_OP_NULL && table_.find(op) != nullptr; }
  /// The MPI library has just created `op`.
  void made(MPI_Op op, bool commutative) noexcept;
  /// `op` is about to be freed. Returns whether it was known, and in *commutative the argument with which made()
  /// restores it.
  bool remove(MPI_Op op, bool* commutative) noexcept;
  /// Removes all entries. No thread may be in an MPI call.
  void clear() noexcept {
    table_.clear([](const bool*) {});
  }

 private:
  HandleTable<MPI_Op, const bool> table_;
  std::atomic<bool> incomplete_{false};  ///< there was no memory for some operation
};

}  // namespace bestride::inline interpose
