// SPDX-License-Identifier: Apache-2.0
#include "interpose/recording/recording.hpp"

#include <link.h>

#include <cstdlib>
#include <iterator>
#include <mutex>
#include <new>

#include "base/variables.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/peers/launch_name.hpp"
#include "interpose/recording/agent.hpp"
#include "interpose/recording/crash_notes.hpp"
#include "interpose/recording/error_notes.hpp"
#include "interpose/recording/exit_notes.hpp"
#include "interpose/recording/python_exceptions.hpp"
#include "interpose/recording/recorded_call.hpp"
#include "telemetry/record/watcher.hpp"

// The start of this object in memory; from the linker.
extern "C" [[gnu::visibility("hidden")]] const ElfW(Ehdr) __ehdr_start;

namespace bestride::inline interpose {

namespace {

/// `function`: the number in the table of functions. `call` for functions that are not recorded.
RecordKind kind_of_function(std::uint16_t function) noexcept {
  switch (function) {
#define BESTRIDE_RECORD(name, number, kind, waits, positions) \
  case number:                                                \
    return RecordKind::kind;
#include "recorded_calls.inc"
#undef BESTRIDE_RECORD
    default: return RecordKind::call;
  }
}

std::string launch_name_or_nothing() noexcept try { return launch_name(); } catch (...) {
  return {};
}

/// The process that watches the job ran on this host when this process made its record.
bool had_watcher_here = false;
bool has_watcher_here() noexcept try { return watcher_is_here(Settings::get().text("BESTRIDE_WATCHER")); } catch (...) {
  return true;
}

/// Without an observer, nobody would read why this process ended.
bool has_observer() noexcept { return is_watched() || !Settings::get().text("BESTRIDE_WATCHER").empty(); }

}  // namespace

constinit Recording* Recording::instance_ = nullptr;
thread_local constinit SiteTable::Caller outer_caller __attribute__((tls_model("initial-exec"))) = {};

Recording::Recording(RecordFile& record) noexcept
    : file(record),
      communicators(record),
      epochs(record, communicators),
      messages(record),
      requests(record, &messages),
      peers(record),
      sites(record, reinterpret_cast<std::uint64_t>(&__ehdr_start)),
      observed(has_observer()) {
  sites.set_ticks_per_second(record.header.ticks_per_second.get());
}

void Recording::begin() noexcept {
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (instance_) return;
  const bool watched = is_watched();
  const bool requested = watched || Settings::get().value("BESTRIDE_RECORD").source != VariableSource::built_in;
  RecordFile* const record = Recorder::get().open(BESTRIDE_ABI_NAME, sizeof(MPI_Request),
                                                  watched ? launch_name_or_nothing().c_str() : "", requested);
  if (!record) return;
  had_watcher_here = has_watcher_here();
  if (watched) start_agent(Recorder::get().path());
  // Never destroyed: MPI may be called from destructors of other libraries.
  alignas(Recording) static unsigned char storage[sizeof(Recording)];
  instance_ = new (storage) Recording(*record);
  Recorder::get().start(*record);
  if (has_observer()) {
    note_mpi_errors();
    note_python_exceptions();
    note_crashes(Recorder::get().path().c_str());
  }
  note_exits(has_observer());
}

void Recording::initialized() noexcept {
  int rank = -1, size = 0;
  if (real.Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS || real.Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
    return;
  int level = MPI_THREAD_MULTIPLE;
  const bool concurrent = real.Query_thread(&level) != MPI_SUCCESS || level == MPI_THREAD_MULTIPLE;
  requests.set_concurrent(concurrent);
  communicators.add_predefined(rank, size);
  if (has_observer()) note_crashes(Recorder::get().path().c_str());
  Recorder::get().refine_clock();
  Recorder::get().set_world(rank, size, concurrent);
  Recorder::get().set_state(ProcessState::initialized);
}

void Recording::finalizing() noexcept {
  communicators.end_world();
  Recorder::get().set_state(ProcessState::finalizing);
}

void Recording::finalized() noexcept {
  Recorder::get().set_state(ProcessState::finalized);
  // If the job is watched, the watching process reads the record once more and removes it, unless it was killed.
  const bool watched = Settings::get().text("BESTRIDE_RECORD") == "keep" || is_watched();
  if (!watched || (had_watcher_here && !has_watcher_here())) Recorder::get().remove();
}

CallMemo& Recording::renew_memo(RecordedThread& thread, const SiteTable::Caller& caller, std::uint16_t function,
                                std::uint64_t object, CommunicatorKind kind) noexcept {
  // Read first: what is looked up below is not older.
  const std::uint32_t generation = communicators.generation();
  // A call from a layer of the MPI library has the memo of the place in the program.
  std::uint64_t address = sites.program_address(caller);
  CallMemo* memo = &thread.memos[CallMemo::index(address)];
  const bool same_place = memo->address == address;
  if (same_place && memo->object == object && (memo->generation == generation || kind == CommunicatorKind::free))
    return *memo;
  if (same_place) {
    memo->peer[CallMemo::sent] = memo->peer[CallMemo::received] = CallMemo::no_peer;
  } else {
    const std::uint32_t site = sites.find(caller, function);
    address = sites.program_address(caller);
    memo = &thread.memos[CallMemo::index(address)];
    *memo = {};
    memo->address = address;
    memo->site = static_cast<std::int16_t>(site);
    memo->site_offset = offset_in(file, sites.record_of(site));
  }
  memo->object = object;
  memo->generation = generation;
  memo->communicator = no_index;
  TrackedCommunicator* const tracked = kind != CommunicatorKind::free ? communicators.find(object, kind) : nullptr;
  memo->tracked = tracked;
  if (tracked) memo->communicator = tracked->id;
  return *memo;
}

std::uint64_t Recording::look_up_size(CallMemo& memo, MPI_Datatype type) const noexcept {
  if (const Predefined* const known = predefined(type)) {
    memo.type = bits_of(type);
    memo.type_size = static_cast<std::uint16_t>(known->size);
  }
  return static_cast<std::uint64_t>(runtime().types.size_of(type));
}

std::uint32_t Recording::count_at_new_peer(CallMemo& memo, CallMemo::Direction direction, std::int32_t rank,
                                           std::uint64_t bytes) noexcept {
  if (rank == null_rank) return 0;
  const bool sent = direction == CallMemo::sent;
  const std::uint64_t key = peer_key(static_cast<const TrackedCommunicator*>(memo.tracked), rank);
  PeerRecord* const peer = key != 0 ? peers.find(key) : nullptr;
  if (!peer) return (sent ? file.header.other_sends : file.header.other_receives).add(1), 0;
  memo.peer[direction] = rank;
  memo.peer_offset[direction] = offset_in(file, *peer);
  return PeerTable::count(*peer, sent, bytes);
}

void Recording::end_timed(ThreadRecorder& thread, SiteRecord& site, bool timed_end) noexcept {
  thread.timed = false;
  sites.add_time(site, thread.end(timed_end || thread.draw() >> 60 == 0 ? ticks() : 1));
}

void Recording::activate(std::uint64_t handle, std::uint64_t now) noexcept {
  RequestRecord* const request = requests.activate(handle, now);
  if (!request) return;
  const RecordKind kind = kind_of_function(request->function.get());
  const std::int32_t peer = request->peer.get();
  if ((kind != RecordKind::prepare_send && kind != RecordKind::prepare_receive) || peer == null_rank) return;
  std::uint64_t key = 0;
  if (const std::uint32_t id = request->communicator.get(); id != no_index && peer >= 0) {
    const CommunicatorRecord& communicator = file.communicators[id % max_communicators];
    key = PeerTable::key_of(id % max_communicators, communicator.first_member.get(), communicator.stride.get(), peer);
  }
  const std::uint64_t bytes = request->bytes.get();
  request->number.set(kind == RecordKind::prepare_send ? peers.count_sent(key, bytes)
                                                       : peers.count_received(key, bytes));
  const std::uint32_t number = request->number.get();
  const PeerRecord* const known =
      number != 0 && bytes >= least_message_bytes && messages.chooses(number) ? peers.known(key) : nullptr;
  const std::uint16_t flag = kind == RecordKind::prepare_send ? 0 : received_flag;
  requests.set_message(*request, !known ? 0 : static_cast<std::uint16_t>(1u + (peers.index_of(known) | flag)));
  if (known) request->posted.set(ticks());
}

BasicType basic_type_of(MPI_Datatype type) noexcept {
  const Predefined* const known = predefined(type);
  if (!known) return BasicType::unknown;
  switch (known->kind) {
    case NumberKind::integer: return BasicType::integer;
    case NumberKind::floating: return BasicType::floating;
    case NumberKind::complex: return BasicType::complex;
    case NumberKind::logical: return BasicType::logical;
    case NumberKind::bytes: return BasicType::bytes;
    default: return BasicType::unknown;
  }
}

ReductionOp reduction_op_of(MPI_Op operation) noexcept {
  static const MPI_Op predefined_operations[] = {MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD, MPI_LAND,
                                                 MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR, MPI_BXOR,
                                                 MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
  for (std::size_t i = 0; i < std::size(predefined_operations); ++i)
    if (operation == predefined_operations[i]) return static_cast<ReductionOp>(i + 1);
  return operation == MPI_OP_NULL ? ReductionOp::unknown : ReductionOp::user;
}

}  // namespace bestride::inline interpose
