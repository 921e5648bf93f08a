// SPDX-License-Identifier: Apache-2.0
#pragma once
// Converts an MPI datatype handle to its Layout.
//
// Decodes every combiner of MPI-4, including the large-count forms, recursively by envelope and contents, and frees
// every handle obtained. Handles are opaque and constants come from the header, so the code does not depend on the MPI
// library that it is compiled against.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "datatype/element_sizes.hpp"
#include "datatype/layout.hpp"
#include "datatype/mpi_calls.hpp"

namespace bestride::inline datatype {

/// One element of a datatype, as the MPI library describes it.
struct DecodedType {
  LayoutPtr layout;              ///< of one element
  std::int64_t lower_bound = 0;  ///< bytes
  std::int64_t extent = 0;       ///< bytes; element i is displaced by i * extent; may be negative or zero
  /// The predefined type of all leaves, or MPI_DATATYPE_NULL if they differ or are pair types. An equivalent datatype
  /// built from it has the same type signature.
  MPI_Datatype leaf = MPI_DATATYPE_NULL;
  /// Packed bytes of the innermost constructor that leaves gaps, in the datatype as the application built it: what a
  /// datatype engine that follows the constructors processes in one loop or list. Without such a constructor, the size
  /// of the element. For example, a face of a cube with adjacent rows is one loop in the layout but a loop of rows in
  /// the datatype.
  std::int64_t unit_bytes = 0;
  ElementSizes elements;  ///< pair types count as one element
};

/// nullopt if the type can't be represented (62-bit overflow, an unknown combiner, an MPI call that failed); MPI then
/// handles it. Makes only local MPI calls; never raises an MPI error. Cost: O(contents).
std::optional<DecodedType> decode(MPI_Datatype type, const DatatypeCalls& mpi);

/// Layout of `count` elements; element i is displaced by i * extent. nullptr on overflow. count >= 0.
LayoutPtr counted(const DecodedType& type, std::int64_t count);

}  // namespace bestride::inline datatype
