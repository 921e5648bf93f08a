// SPDX-License-Identifier: Apache-2.0
#include "interpose/message/shadowed_call.hpp"

#include "interpose/device/transfer_batch.hpp"
#include "interpose/device/transfer_choice.hpp"

namespace bestride::inline interpose {
namespace {

bool needs_device(const BufferRegion& region) noexcept {
  if (region.unknown) return locate_buffer(region.user, LayoutPtr()).needs_device;
  return (region.reads && locate_buffer(region.user, region.reads).needs_device) ||
         (region.writes && region.writes != region.reads && locate_buffer(region.user, region.writes).needs_device);
}

}  // namespace

DeviceBuffers find_device_buffers(const BufferRegion& out, const BufferRegion& in, MPI_Comm comm) {
  DeviceBuffers found{needs_device(out), needs_device(in)};
  if (!found.out && !found.in) return found;
  if (gpu_aware()) {
    found.out = found.out && !out.plain;
    found.in = found.in && !in.plain;
  }
  if ((found.out && out.unknown) || (found.in && in.unknown))
    found.error = raise_device_error(comm, DeviceError::unknown, "a datatype that can't be represented");
  return found;
}

int ShadowedCall::prepare(const BufferRegion& out, bool out_by_gpu, const BufferRegion& in, bool in_by_gpu,
                          MPI_Comm comm) {
  comm_ = comm;
  user_out_ = out.user;
  user_in_ = const_cast<void*>(in.user);
  Result<cuda::Done> done = cuda::Done{};
  if (out_by_gpu) done = out_.prepare(out, comm);
  if (done && in_by_gpu) done = in_.prepare(in, comm);
  if (done) return MPI_SUCCESS;
  report_transfer_failure(done.error());
  return bestride::raise_error(comm);
}

int ShadowedCall::finish() {
  TransferBatch batch;
  in_.copy_out();
  return batch.flush() ? bestride::raise_error(comm_) : MPI_SUCCESS;
}

}  // namespace bestride::inline interpose
