// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/mpi_errors.hpp"

#include "base/message.hpp"
#include "interpose/mpi/noted_error.hpp"
#include "interpose/objects/runtime.hpp"
#include "kernels/cuda/driver/driver.hpp"

namespace bestride::inline interpose {

void report_transfer_failure(const Error& why) noexcept {
  if (cuda::Driver::unusable()) return;  // already reported when the driver failed
  warn_once(why.text.c_str(),
            "device memory of an MPI call can't be moved: %s; the call returns MPI_ERR_OTHER: copy the data to host "
            "memory first, or "
            "use a GPU-aware MPI library with BESTRIDE_GPU_AWARE=yes",
            why.text.c_str());
}

int raise_error(MPI_Comm comm, int error) {
  if (runtime().ended()) return error;
  const NotedError noted(error);
  real.Comm_call_errhandler(comm != MPI_COMM_NULL ? comm : MPI_COMM_WORLD, error);
  return error;
}

}  // namespace bestride::inline interpose
