// SPDX-License-Identifier: Apache-2.0
#pragma once
// One message's bytes spelled twice: as users write them, and as `count` elements of the outermost loop's body.
#include <mpi.h>

#include <string>
#include <vector>

namespace spellings {

/// (count, type) for one peer. The handle lives until the end of the program.
struct Spelled {
  int count = 1;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

struct Shape {
  std::string name;
  /// The user's spelling where a call has one block, and where it has one block a peer: there its extent is `step`.
  Spelled plain, tiled;
  Spelled respelled;  ///< count * extent is `step`
  MPI_Aint step = 0;  ///< bytes from one peer's block to the next
  MPI_Aint bytes = 0;
  /// Every basic element has 8 bytes: a reduction may take them for MPI_DOUBLE.
  bool doubles = true;
};

/// About `payload` bytes of every shape there is.
std::vector<Shape> shapes_of(int payload);

}  // namespace spellings
