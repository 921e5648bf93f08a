// SPDX-License-Identifier: Apache-2.0
#pragma once
// From an MPI datatype handle to its Layout: the one place where MPI handles enter this room.
//
// Decodes every combiner of MPI-4 and the large-count forms by envelope and contents, recursively; frees every handle obtained.
// Handles are opaque, constants come from the header: nothing here knows which MPI library it is compiled against.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "datatype/layout.hpp"
#include "datatype/mpi_calls.hpp"

namespace bestride {

/// One element of a datatype, as the MPI library describes it.
struct DecodedType {
  LayoutPtr layout;              ///< of one element
  std::int64_t lower_bound = 0;  ///< bytes
  std::int64_t extent = 0;       ///< bytes; element i lies i * extent further; may be negative or zero
  /// The one predefined type all leaves are, or MPI_DATATYPE_NULL if they differ or are pair types. A respelled type built
  /// from it has the same type signature.
  MPI_Datatype leaf = MPI_DATATYPE_NULL;
  /// Packed bytes of the innermost constructor that leaves gaps, as the type is spelled: the loop or list an engine that follows the
  /// spelling runs through at a time. Without one, the size of the element. A face of a cube with rows one after the other is one
  /// loop to the layout and rows to the spelling.
  std::int64_t unit_bytes = 0;
};

/// nullopt: what this type means can't be represented ("Opaque": 62-bit overflow, an unknown combiner, an MPI call that
/// failed); MPI handles it. Makes only local MPI calls; never raises an MPI error. Cost: O(contents).
std::optional<DecodedType> decode(MPI_Datatype type, const DatatypeCalls& mpi);

/// Layout of `count` elements: element i displaced by i * extent. nullptr on overflow. count >= 0.
LayoutPtr counted(const DecodedType& type, std::int64_t count);

}  // namespace bestride
