// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an MPI library says a datatype was made of: envelope and contents in one form for plain and large-count constructors,
// and the child handles freed when done.
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "datatype/mpi_calls.hpp"

namespace bestride {

class TypeContents {
 public:
  /// Reads the envelope; for derived types also the contents. good() says whether MPI gave them.
  TypeContents(MPI_Datatype type, const DatatypeCalls& mpi);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  bool good() const noexcept { return good_; }
  int combiner() const noexcept { return combiner_; }
  /// Made by a large-count constructor: counts and displacements are in counts(), not in integers() and addresses().
  bool large() const noexcept { return !counts_.empty(); }
  const std::vector<int>& integers() const noexcept { return integers_; }
  const std::vector<MPI_Aint>& addresses() const noexcept { return addresses_; }
#if MPI_VERSION >= 3
  const std::vector<MPI_Count>& counts() const noexcept { return counts_; }
#endif
  /// Child handles; valid while this object lives.
  const std::vector<MPI_Datatype>& types() const noexcept { return types_; }

 private:
  const DatatypeCalls& mpi_;
  bool good_ = false;
  int combiner_ = MPI_COMBINER_NAMED;
  std::vector<int> integers_;
  std::vector<MPI_Aint> addresses_;
#if MPI_VERSION >= 3
  std::vector<MPI_Count> counts_;
#else
  std::vector<std::int64_t> counts_;
#endif
  std::vector<MPI_Datatype> types_;
};

/// Predefined types, and those the Fortran parametrised constructors return, may be neither opened nor freed.
bool is_leaf_combiner(int combiner) noexcept;

}  // namespace bestride
