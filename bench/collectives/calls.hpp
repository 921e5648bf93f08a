// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls themselves, by their MPI_ names, which a preload may take, and by the MPI library's own PMPI_ names
// (base/library_names.hpp).
#include <mpi.h>

#include <cstddef>
#include <vector>

#include "options.hpp"

namespace collectives {

/// One set of names.
struct Names;
extern const Names mpi_names, pmpi_names;

/// An operation on so many bytes over MPI_COMM_WORLD, root 0, sum. Blocks of `v` forms differ by at most one element.
class Operation {
 public:
  Operation(Kind kind, std::size_t bytes, Element element);

  Kind kind() const { return kind_; }
  std::size_t bytes() const { return elements_ * 4; }  ///< whole elements, and equal blocks where the call wants them
  std::size_t contribution() const {
    return contribution_ * 4;
  }                                                   ///< bytes that this rank gives; 0 where only the root does
  std::size_t result() const { return result_ * 4; }  ///< bytes that this rank gets; 0 where only the root does

  /// `result` of a broadcast is in and out: on the root it holds the contribution before.
  void call(const Names& names, const void* contribution, void* result) const;
  /// Starts it, then tests until it is done, yielding the core in between.
  void call_nonblocking(const Names& names, const void* contribution, void* result) const;
  /// Makes the persistent request; run_persistent() starts it and tests until it is done. The caller frees it.
  MPI_Request make_persistent(const Names& names, const void* contribution, void* result) const;
  void run_persistent(const Names& names, MPI_Request* request) const;

 private:
  template <class Apply>
  void apply(const Names& names, const void* contribution, void* result, Apply apply) const;

  Kind kind_;
  MPI_Datatype type_;
  std::size_t elements_ = 0, contribution_ = 0, result_ = 0;
  int block_ = 0;  ///< elements of one rank, of forms with equal blocks
  std::vector<int> counts_, places_;
};

}  // namespace collectives
