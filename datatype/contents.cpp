// SPDX-License-Identifier: Apache-2.0
#include "datatype/contents.hpp"

namespace bestride::inline datatype {

bool is_leaf_combiner(int combiner) noexcept {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

TypeContents::TypeContents(MPI_Datatype type, const DatatypeCalls& mpi) : mpi_(mpi) {
#if MPI_VERSION >= 4
  // The large-count form works for types of both constructors; the plain form fails for types of a large-count
  // constructor.
  if (mpi.get_envelope_c && mpi.get_contents_c) {
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
    if (mpi.get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner_) != MPI_SUCCESS) return;
    if (is_leaf_combiner(combiner_)) {
      good_ = true;
      return;
    }
    integers_.resize(static_cast<std::size_t>(integers));
    addresses_.resize(static_cast<std::size_t>(addresses));
    counts_.resize(static_cast<std::size_t>(counts));
    types_.resize(static_cast<std::size_t>(types));
    good_ = mpi.get_contents_c(type, integers, addresses, counts, types, integers_.data(), addresses_.data(),
                               counts_.data(), types_.data()) == MPI_SUCCESS;
    if (!good_) types_.clear();
    return;
  }
#endif
  int integers = 0, addresses = 0, types = 0;
  if (mpi.get_envelope(type, &integers, &addresses, &types, &combiner_) != MPI_SUCCESS) return;
  if (is_leaf_combiner(combiner_)) {
    good_ = true;
    return;
  }
  integers_.resize(static_cast<std::size_t>(integers));
  addresses_.resize(static_cast<std::size_t>(addresses));
  types_.resize(static_cast<std::size_t>(types));
  good_ = mpi.get_contents(type, integers, addresses, types, integers_.data(), addresses_.data(), types_.data()) ==
          MPI_SUCCESS;
  if (!good_) types_.clear();
}

TypeContents::~TypeContents() {
  for (MPI_Datatype& type : types_) {
    int integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
    if (mpi_.get_envelope_c) {
      MPI_Count i = 0, a = 0, c = 0, t = 0;
      if (mpi_.get_envelope_c(type, &i, &a, &c, &t, &combiner) == MPI_SUCCESS && !is_leaf_combiner(combiner))
        mpi_.free(&type);
      continue;
    }
#endif
    if (mpi_.get_envelope(type, &integers, &addresses, &types, &combiner) == MPI_SUCCESS && !is_leaf_combiner(combiner))
      mpi_.free(&type);
  }
}

}  // namespace bestride::inline datatype
