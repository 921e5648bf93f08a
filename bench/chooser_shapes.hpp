// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random datatypes like those of programs. Block lengths, strides, spellings and leaves are random, so that they are
// not points of the calibration's grid.
#include <mpi.h>

#include <cstdint>
#include <random>
#include <string>

namespace bestride {

struct RandomType {
  MPI_Datatype type = MPI_DATATYPE_NULL;  ///< committed; the caller frees it
  int count = 1;
  std::string text;  ///< for the results file
};

/// The same sequence on every rank for the same generator. Packed sizes between 100 B and 8 MiB, log-uniform.
RandomType make_random_type(std::mt19937& random);

}  // namespace bestride
