// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/argument_error.hpp"

#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {

bool is_argument_error(int error) noexcept {
  int error_class = MPI_SUCCESS;
  if (real.Error_class(error, &error_class) != MPI_SUCCESS) return false;
  switch (error_class) {
    case MPI_ERR_BUFFER:
    case MPI_ERR_COUNT:
    case MPI_ERR_TYPE:
    case MPI_ERR_TAG:
    case MPI_ERR_COMM:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_GROUP:
    case MPI_ERR_OP:
    case MPI_ERR_TOPOLOGY:
    case MPI_ERR_DIMS:
    case MPI_ERR_ARG:
    case MPI_ERR_INFO:
    case MPI_ERR_WIN:
    case MPI_ERR_FILE: return true;
    default: return false;
  }
}

}  // namespace bestride::inline interpose
