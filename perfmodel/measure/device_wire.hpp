// SPDX-License-Identifier: Apache-2.0
#pragma once
// Messages of contiguous device memory, where the MPI library takes it. Both ranks call the same functions in the same order.
#include <mpi.h>

#include "perfmodel/measure/device_plan.hpp"
#include "perfmodel/measure/gpu_session.hpp"

namespace bestride {

/// Whether the MPI library this program is linked to says that it takes CUDA device memory: by MPIX_GPU_query_support (MPICH) or
/// MPIX_Query_cuda_support (MPICH, Open MPI), where it has them. Nothing is guessed.
bool mpi_takes_device_memory();

class WireMeasurer {
 public:
  /// `pair`: two ranks, each with a session of its own, which must outlive the measurer. Throws if there is no memory.
  WireMeasurer(MPI_Comm pair, const GpuSession& session, double limit);
  ~WireMeasurer();
  WireMeasurer(const WireMeasurer&) = delete;
  /// Seconds, valid on rank 0; 0 where no sample was undisturbed.
  double measure(const DevicePoint& point);

 private:
  MPI_Comm pair_;
  const cuda::Driver& driver_;
  double limit_;
  cuda::Address memory_ = 0, other_ = 0;
};

}  // namespace bestride
