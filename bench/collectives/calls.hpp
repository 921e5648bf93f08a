// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls by their MPI_ names, which a preload library may intercept, and by the MPI library's own PMPI_ names
// (base/profiling_names.hpp).
#include <mpi.h>

#include <cstddef>
#include <vector>

#include "options.hpp"

namespace collectives {

/// One set of names.
struct Names;
extern const Names mpi_names, pmpi_names;

/// An operation on a vector of `bytes` bytes over MPI_COMM_WORLD, with root 0 and MPI_SUM. Blocks of `v` forms differ
/// by at most one element.
class Operation {
 public:
  Operation(Kind kind, std::size_t bytes, Element element);

  Kind kind() const { return kind_; }
  std::size_t bytes() const { return elements_ * 4; }  ///< whole elements, and equal blocks if the call needs them
  std::size_t contribution() const {
    return contribution_ * 4;
  }                                                   ///< bytes that this rank sends; 0 if only the root does
  std::size_t result() const { return result_ * 4; }  ///< bytes that this rank gets; 0 if only the root does

  /// `result` of a broadcast is input and output: on the root it must contain the contribution.
  void call(const Names& names, const void* contribution, void* result) const;
  /// Starts the nonblocking form and tests until it completes, yielding the core in between.
  void call_nonblocking(const Names& names, const void* contribution, void* result) const;
  /// Creates the persistent request. run_persistent() starts it and tests until it completes. The caller frees it.
  MPI_Request make_persistent(const Names& names, const void* contribution, void* result) const;
  void run_persistent(const Names& names, MPI_Request* request) const;

 private:
  template <class Apply>
  void apply(const Names& names, const void* contribution, void* result, Apply apply) const;

  Kind kind_;
  MPI_Datatype type_;
  std::size_t elements_ = 0, contribution_ = 0, result_ = 0;
  int block_ = 0;  ///< elements of one rank in forms with equal blocks
  std::vector<int> counts_, places_;
};

}  // namespace collectives
