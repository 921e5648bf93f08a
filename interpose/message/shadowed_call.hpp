// SPDX-License-Identifier: Apache-2.0
#pragma once
// A collective with device memory: prepares the shadows that MPI is given in place of its buffers, and completes them
// after the call.
#include <mpi.h>

#include <memory>
#include <new>
#include <optional>

#include "interpose/device/host_shadow.hpp"
#include "interpose/device/mpi_errors.hpp"
#include "interpose/device/unsupported.hpp"
#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/completion.hpp"
#include "interpose/message/report_entry.hpp"

namespace bestride::inline interpose {

/// The two buffers of a call in flight.
class ShadowedCall final : public Completion {
 public:
  /// `comm`: the communicator whose error handler is called. Returns MPI_SUCCESS, or the error that was raised.
  int prepare(const BufferRegion& out, bool out_by_gpu, const BufferRegion& in, bool in_by_gpu, MPI_Comm comm);
  /// The addresses that MPI is given.
  const void* out() const noexcept { return out_ ? out_.address() : user_out_; }
  void* in() const noexcept { return in_ ? in_.address() : user_in_; }
  /// Records the shadowed buffers for the report.
  void record(const char* call_name, double seconds) const noexcept {
    if (out_) record_device_buffer(call_name, "shadow", out_.layout(), seconds);
    if (in_) record_device_buffer(call_name, "shadow", in_.layout(), out_ ? 0 : seconds);
  }
  /// Copies out what MPI has written. Returns MPI_SUCCESS, or the error that was raised.
  int finish();

  void fill() noexcept override { out_.copy_in() && in_.copy_in(); }
  void complete(bool good, const MPI_Status*) noexcept override {
    if (good) in_.copy_out();
  }
  bool wants_status() const noexcept override { return false; }
  bool failed() const noexcept override { return out_.failed() || in_.failed(); }
  int raise_error() const override { return bestride::raise_error(comm_); }

 private:
  HostShadow out_, in_;
  const void* user_out_ = nullptr;
  void* user_in_ = nullptr;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Which buffers of a call have to be staged.
struct DeviceBuffers {
  bool out = false, in = false;
  int error = MPI_SUCCESS;  ///< already raised
};
/// Determines the memory of the regions. With a GPU-aware MPI, contiguous types are left unchanged. A type that cannot
/// be represented, on device memory, is an error.
DeviceBuffers find_device_buffers(const BufferRegion& out, const BufferRegion& in, MPI_Comm comm);

/// Makes the call, `call(send buffer, receive buffer)`, with host shadows of the buffers that the GPU has to move.
/// nullopt: there is no such buffer, and the call was not made. The completion is attached to the request if there is
/// one. `call_name`: "MPI_Bcast".
template <class Call, class... Tail>
std::optional<int> call_with_shadows(const char* call_name, const BufferRegion& out, const BufferRegion& in,
                                     MPI_Comm comm, Call call, Tail... tail) {
  const DeviceBuffers found = find_device_buffers(out, in, comm);
  if (found.error != MPI_SUCCESS) return found.error;
  if (!found.out && !found.in) return std::nullopt;
  if (!blocking<Tail...> && !request_of(tail...)) return std::nullopt;  // MPI reports the error
  const Stopwatch watch(reporting());
  std::unique_ptr<ShadowedCall> staged(inject_failure(FailPoint::completion) ? nullptr
                                                                             : new (std::nothrow) ShadowedCall);
  if (!staged) {
    report_transfer_failure({"no memory to remember what a call owes"});
    return raise_error(comm);
  }
  if (const int error = staged->prepare(out, found.out, in, found.in, comm); error != MPI_SUCCESS) return error;
  staged->persistent = persistent<Tail...>;
  staged->pending = !staged->persistent;
  // Also when a persistent request is only created (quirks::persistent_gathers_copy_early).
  staged->fill();
  if (staged->failed()) return staged->raise_error();
  const int error = call(staged->out(), staged->in());
  if (reporting()) [[unlikely]]
    staged->record(call_name, watch.seconds());
  if (error != MPI_SUCCESS) return error;
  if (blocking<Tail...>) return staged->finish();
  attach(staged.release(), *request_of(tail...));
  return error;
}

}  // namespace bestride::inline interpose
