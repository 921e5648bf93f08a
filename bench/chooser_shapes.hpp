// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random datatypes as programs make them, none of them on the calibration's grid: block lengths, strides, spellings and
// leaves are drawn, not taken from its axes.
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
