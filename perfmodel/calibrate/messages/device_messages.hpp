// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures messages of contiguous device memory, if the MPI library accepts it. Both ranks call the same functions in
// the same order.
#include <mpi.h>

#include "perfmodel/calibrate/device/device_plan.hpp"
#include "perfmodel/calibrate/device/gpu_session.hpp"

namespace bestride::inline perfmodel {

/// True if the MPI library that this program is linked to reports that it accepts CUDA device memory, by
/// MPIX_GPU_query_support (MPICH) or MPIX_Query_cuda_support (MPICH, Open MPI). False if it has neither function.
bool mpi_takes_device_memory();

class MessageMeasurer {
 public:
  /// `pair`: two ranks, each with its own session, which must outlive the measurer. Throws if out of memory.
  MessageMeasurer(MPI_Comm pair, const GpuSession& session, double limit);
  ~MessageMeasurer();
  MessageMeasurer(const MessageMeasurer&) = delete;
  /// Seconds, valid on rank 0; 0 if every sample was disturbed.
  double measure(const DevicePoint& point);

 private:
  MPI_Comm pair_;
  const cuda::Driver& driver_;
  double limit_;
  cuda::Address memory_ = 0, other_ = 0;
};

}  // namespace bestride::inline perfmodel
