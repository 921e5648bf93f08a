// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recording: what the recording entries of this backend share, and when recording begins and ends.
#include <mpi.h>

#include <cstdint>

#include "interpose/recording/communicators.hpp"
#include "telemetry/record/message_log.hpp"
#include "telemetry/record/peers.hpp"
#include "telemetry/record/recorder.hpp"
#include "telemetry/record/reduction.hpp"
#include "telemetry/record/requests.hpp"
#include "telemetry/record/sites.hpp"

namespace bestride::inline interpose {

class Recording {
 public:
  explicit Recording(RecordFile& record) noexcept;

  /// nullptr until begin() has opened the record file. A thread with a recorder of depth 0 exists only after that.
  static Recording* get() noexcept { return instance_; }
  /// Before MPI_Init or MPI_Session_init: opens the record file.
  static void begin() noexcept;
  /// MPI_Init has succeeded.
  void initialized() noexcept;
  /// MPI_Finalize is called; it has succeeded.
  void finalizing() noexcept;
  void finalized() noexcept;

  /// A persistent request was started at `now`.
  void activate(std::uint64_t request, std::uint64_t now) noexcept;

  RecordFile& file;
  CommunicatorTracker communicators;
  MessageLog messages;
  RequestTracker requests;
  PeerTable peers;
  SiteTable sites;

 private:
  static constinit Recording* instance_;
};

/// True if the error is one of the arguments, which the library finds before it communicates.
bool is_argument_error(int error) noexcept;

/// unknown: not a predefined type. Handles may be invalid.
BasicType basic_type_of(MPI_Datatype type) noexcept;
ReductionOp reduction_op_of(MPI_Op operation) noexcept;

/// Adds the recording entries on top of all others (services.h, wrap). False if BESTRIDE_RECORD=off or there is no
/// memory. Called once, when the backend is opened.
bool install_recording() noexcept;

}  // namespace bestride::inline interpose
