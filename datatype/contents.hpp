// SPDX-License-Identifier: Apache-2.0
#pragma once
// The envelope and the contents of a datatype, in one form for plain and large-count constructors. Frees the child
// handles on destruction.
#include <mpi.h>

#include <cstdint>
#include <vector>

#include "datatype/mpi_calls.hpp"

namespace bestride::inline datatype {

class TypeContents {
 public:
  /// Reads the envelope and, for derived types, the contents. good() is false if MPI returned an error.
  TypeContents(MPI_Datatype type, const DatatypeCalls& mpi);
  ~TypeContents();
  TypeContents(const TypeContents&) = delete;
  TypeContents& operator=(const TypeContents&) = delete;

  bool good() const noexcept { return good_; }
  int combiner() const noexcept { return combiner_; }
  /// True if the type was made by a large-count constructor: counts and displacements are in counts(), not in
  /// integers() and addresses().
  bool large() const noexcept { return !counts_.empty(); }
  const std::vector<int>& integers() const noexcept { return integers_; }
  const std::vector<MPI_Aint>& addresses() const noexcept { return addresses_; }
#if MPI_VERSION >= 3
  const std::vector<MPI_Count>& counts() const noexcept { return counts_; }
#endif
  /// Child handles; valid during the lifetime of this object.
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

/// Predefined types, and the types that the Fortran parametrized constructors return. They may be neither decoded nor
/// freed.
bool is_leaf_combiner(int combiner) noexcept;

}  // namespace bestride::inline datatype
