// SPDX-License-Identifier: Apache-2.0
#pragma once
// Two spellings of one message: as users write it, and as `count` elements of the outermost loop's body.
#include <mpi.h>

#include <string>
#include <vector>

namespace spellings {

/// (count, type) for one peer. The handle is valid until the end of the program.
struct Spelled {
  int count = 1;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};

struct Shape {
  std::string name;
  /// The user's spelling if a call has one block, and if it has one block per peer; the extent of the latter is `step`.
  Spelled plain, tiled;
  Spelled respelled;  ///< count * extent is `step`
  MPI_Aint step = 0;  ///< distance between the blocks of two peers, in bytes
  MPI_Aint bytes = 0;
  /// Every basic element has 8 bytes, so that a reduction can treat them as MPI_DOUBLE.
  bool doubles = true;
};

/// All shapes, each with about `payload` bytes.
std::vector<Shape> shapes_of(int payload);

}  // namespace spellings
