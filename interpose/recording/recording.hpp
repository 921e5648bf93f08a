// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recording: what the recording entries of this backend share, and when recording begins and ends.
#include <mpi.h>

#include <cstdint>

#include "interpose/recording/communicators.hpp"
#include "interpose/recording/epochs.hpp"
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

  /// The recording of this process; nullptr until begin() has opened the record file. A thread with an open gate exists
  /// only after that.
  static Recording* get() noexcept { return instance_; }
  /// Opens the record file. Called before MPI_Init or MPI_Session_init.
  static void begin() noexcept;
  /// MPI_Init has succeeded.
  void initialized() noexcept;
  /// MPI_Finalize is called; it has succeeded.
  void finalizing() noexcept;
  void finalized() noexcept;

  /// A persistent request was started at `now`.
  void activate(std::uint64_t request, std::uint64_t now) noexcept;

  /// The memo of this place, with what is known of the communicator, window or file with this handle. `kind`: intra
  /// for every communicator; free: the call has no such object. Valid until the thread's next call.
  template <CommunicatorKind kind>
  [[gnu::always_inline]] CallMemo& memo_of(RecordedThread& thread, const SiteTable::Caller& caller,
                                           std::uint16_t function, std::uint64_t object) noexcept {
    const auto address = reinterpret_cast<std::uint64_t>(caller.return_address);
    CallMemo& memo = thread.memos[CallMemo::index(address)];
    if (difference<kind>(memo, address, object) == 0) [[likely]]
      return memo;
    return renew_memo(thread, caller, function, object, kind);
  }
  /// 0: this is the memo of this place, with this object.
  template <CommunicatorKind kind>
  [[gnu::always_inline]] std::uint64_t difference(const CallMemo& memo, std::uint64_t address,
                                                  std::uint64_t object) const noexcept {
    const std::uint64_t place = memo.address ^ address;
    return kind == CommunicatorKind::free
               ? place
               : place | (memo.object ^ object) | (memo.generation ^ communicators.generation());
  }
  /// Bytes of an element of a type that may be invalid; 0: not known.
  [[gnu::always_inline]] std::uint64_t size_of(CallMemo& memo, MPI_Datatype type) const noexcept {
    return memo.type == bits_of(type) ? memo.type_size : look_up_size(memo, type);
  }
  /// Counts a message to or from a rank of the memo's communicator. Returns its number among those, from 1; 0: not
  /// counted by peer, or the rank is null_rank.
  template <CallMemo::Direction direction>
  [[gnu::always_inline]] std::uint32_t count_message(CallMemo& memo, std::int32_t rank, std::uint64_t bytes) noexcept {
    if (memo.peer[direction] != rank) [[unlikely]]
      return count_at_new_peer(memo, direction, rank, bytes);
    return PeerTable::count(at_offset<PeerRecord>(file, memo.peer_offset[direction]), direction == CallMemo::sent,
                            bytes);
  }
  /// Ends the record of a call that was timed when it began. `timed_end`: its end is always timed, too.
  void end_timed(ThreadRecorder& thread, SiteRecord& site, bool timed_end) noexcept;

  RecordFile& file;
  CommunicatorTracker communicators;
  EpochTracker epochs;
  MessageLog messages;
  RequestTracker requests;
  PeerTable peers;
  SiteTable sites;
  const bool observed;  ///< the job is watched, so that somebody reads what costs more to record

 private:
  [[gnu::noinline]] CallMemo& renew_memo(RecordedThread& thread, const SiteTable::Caller& caller,
                                         std::uint16_t function, std::uint64_t object, CommunicatorKind kind) noexcept;
  [[gnu::noinline]] std::uint64_t look_up_size(CallMemo& memo, MPI_Datatype type) const noexcept;
  [[gnu::noinline]] std::uint32_t count_at_new_peer(CallMemo& memo, CallMemo::Direction direction, std::int32_t rank,
                                                    std::uint64_t bytes) noexcept;

  static constinit Recording* instance_;
};

/// Where the calling thread has called an MPI function, from one entry of this function to another.
extern thread_local constinit SiteTable::Caller outer_caller __attribute__((tls_model("initial-exec")));

/// The key of a peer's record; 0: not known.
inline std::uint64_t peer_key(const TrackedCommunicator* communicator, std::int32_t rank) noexcept {
  return communicator && rank >= 0 ? communicator->peer_key(rank) : 0;
}

/// unknown: not a predefined type. Handles may be invalid.
BasicType basic_type_of(MPI_Datatype type) noexcept;
ReductionOp reduction_op_of(MPI_Op operation) noexcept;

/// Adds the recording entries on top of all others (services.h, wrap). False if BESTRIDE_RECORD=off or there is no
/// memory. Called once, when the backend is opened.
bool install_recording() noexcept;

}  // namespace bestride::inline interpose
