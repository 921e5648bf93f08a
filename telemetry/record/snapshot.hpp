// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a record file says of one rank, as plain values: the input of the wait-for analysis and of `bestride where`.
//
// Every index in here has been checked, every text is terminated and cut, and calls are whole. Alternative considered:
// to give readers the file's own structures, which would spread the checks over all of them.
#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/record/layout.hpp"
#include "telemetry/record/process_state.hpp"
#include "telemetry/record/process_wait.hpp"

namespace bestride::inline telemetry {

/// The content of a CallRecord.
struct CallSnapshot {
  std::uint64_t number = 0;   ///< calls of its thread before it
  std::uint64_t entered = 0;  ///< ticks
  std::uint64_t left = 0;     ///< ticks; 0: in the call; 1: returned, not timed
  std::uint16_t function = no_function;
  std::uint16_t operation = 0;
  std::uint32_t communicator = no_index;
  std::int32_t peer = no_rank;
  std::int32_t tag = no_tag;
  std::int32_t second_peer = no_rank;
  std::int32_t second_tag = no_tag;
  std::uint64_t bytes = 0;
  std::uint32_t ordinal = 0;
  std::uint32_t site = no_index;
};

/// CPU seconds of a polling call together with what the program does before the next one. A program that takes longer
/// computes between its polling calls. MPI_Iprobe of MPICH 4.0 that finds nothing takes 277 instructions (callgrind).
inline constexpr double poll_cpu_seconds = 10e-6;

/// The content of a ProbeRecord.
struct ProbeSnapshot {
  std::uint16_t function = no_function;
  std::uint32_t communicator = no_index;
  std::int32_t peer = no_rank;
  std::int32_t tag = no_tag;
};

struct ThreadSnapshot {
  unsigned slot = 0;
  int tid = 0;
  bool in_mpi = false;
  bool moving = false;  ///< it began calls while it was read: `current` is empty, `in_mpi` one of several values
  bool torn = false;    ///< the current call can't be read: its writer was stopped or killed while it wrote
  /// The thread makes only polling calls, and they find nothing. The reader leaves this false, because it takes two
  /// snapshots to see.
  bool polling = false;
  std::uint64_t calls = 0;
  std::uint64_t polls = 0;
  std::uint64_t last_left = 0;  ///< ticks
  std::uint16_t poll_function = no_function;
  /// True if the thread polls `probes`, the requests of which it is the poller, and nothing else.
  bool polled_known = false;
  bool polls_one = false;  ///< with always the same call
  std::vector<ProbeSnapshot> probes;
  std::optional<CallSnapshot> current;  ///< only if in_mpi
  std::vector<CallSnapshot> finished;   ///< the last ones, oldest first; calls that can't be read whole are left out
  char state = '?';                     ///< of /proc, see ProcessStatus; '?' if the process has ended or can't be seen
  std::string channel;                  ///< kernel function in which the thread waits, or ""
  double cpu_seconds = 0;               ///< that the thread has used; 0 if that is not known
};

/// The content of a CommunicatorRecord that is in use, or freed but not reused.
struct CommunicatorSnapshot {
  std::uint32_t index = 0;
  std::uint64_t uid = 0;
  std::uint64_t parent_uid = 0;
  std::uint32_t collectives = 0;  ///< they wrap
  std::int32_t size = 0;
  std::int32_t rank = 0;
  std::int32_t first_member = -1;
  std::int32_t stride = 0;
  CommunicatorKind kind = CommunicatorKind::intra;
  std::string name;
  bool freed = false;
  std::uint32_t reductions = 0;  ///< the hash of those among the collective calls
  std::uint32_t site = no_index;
  std::int32_t local_size = 0;
  std::uint32_t side = 0;
};

/// The content of an EpochRecord.
struct EpochSnapshot {
  std::uint32_t window = no_index;  ///< index in the communicators
  std::int32_t rank = no_rank;      ///< in MPI_COMM_WORLD
  std::uint32_t posts = 0, starts = 0, completes = 0;
};

/// The content of an AmountsRecord.
struct AmountsSnapshot {
  std::uint32_t communicator = no_index;
  std::uint32_t ordinal = 0;
  std::vector<std::uint32_t> sent, received;
};

/// The content of a RequestRecord.
struct RequestSnapshot {
  std::uint64_t key = 0;
  std::uint64_t posted = 0;
  std::uint64_t bytes = 0;
  std::uint16_t function = no_function;
  std::uint32_t communicator = no_index;
  std::int32_t peer = no_rank;
  std::int32_t tag = no_tag;
  std::uint32_t ordinal = 0;
  std::uint16_t waiter = 0;  ///< 1 + the slot of a thread in a call that waits for it; 0: none
  std::uint16_t poller = 0;  ///< 1 + the slot of a thread that polls it; 0: none
  std::uint16_t handles = 0;
  std::uint32_t number = 0;
};

struct FrameSnapshot {
  std::uint64_t address = 0;
  std::uint32_t module = no_index;
};

/// The content of a SiteRecord.
struct SiteSnapshot {
  std::uint64_t address = 0;
  std::uint32_t module = no_index;
  std::uint16_t function = no_function;
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
  std::uint64_t ticks = 0;
  std::uint64_t most_ticks = 0;
  std::array<std::uint32_t, histogram_size> histogram{};
  std::vector<FrameSnapshot> stack;  ///< innermost first
  double saved_seconds = 0;          ///< as SiteEffects
  std::uint16_t served = 0;
};

struct ModuleSnapshot {
  std::uint64_t load_address = 0;
  std::vector<std::uint8_t> build_id;  ///< empty: none
  std::string path;                    ///< begins with '/' unless its beginning did not fit
};

/// The content of a PeerRecord.
struct PeerSnapshot {
  std::uint32_t communicator = no_index;  ///< no_index: `rank` is in MPI_COMM_WORLD
  std::uint32_t rank = 0;
  std::uint64_t sent_messages = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_messages = 0;
  std::uint64_t received_bytes = 0;
};

/// The content of a MessageRecord. Times are in ticks.
struct MessageSnapshot {
  std::uint32_t communicator = no_index;  ///< no_index: `peer` is in MPI_COMM_WORLD
  std::uint32_t peer = 0;
  bool received = false;
  std::uint16_t tag = 0;       ///< folded_tag()
  std::uint16_t together = 1;  ///< requests that the same call completed
  std::uint32_t number = 0;    ///< from 1
  std::uint32_t bytes = 0;
  std::uint64_t posted = 0, waited = 0, completed = 0;  ///< not ascending in a mixture of two messages
};

/// A process that is outside MPI for so long is looked at more closely.
constexpr double quiet_seconds = 2;
/// The same for a call in which other threads of the process are looked at.
constexpr double help_seconds = 0.5;

/// The content of an EndNote; an MPI error only if its thread is still in the call.
struct EndSnapshot {
  EndKind kind = EndKind::mpi_error;
  std::uint64_t at = 0;  ///< ticks
  std::int32_t code = 0;
  std::string text;  ///< lines end with '\n'
};

struct RankSnapshot {
  std::string path;  ///< of the record file
  std::string job, host, executable, abi, watcher, launch;
  int pid = 0;
  std::uint64_t process_start = 0;
  std::uint64_t pid_namespace = 0;  ///< 0: not known
  ProcessState state = ProcessState::starting;
  bool alive = false;
  bool visible = false;     ///< alive, and its pid can be looked up in /proc here
  bool unrecorded = false;  ///< it has made no MPI call; see absent_ranks.hpp
  ProcessUse use;           ///< if it is visible
  ProcessWait wait;         ///< if it is visible and has been outside MPI for `quiet_seconds`
  /// A thread that is in no MPI call may go on by itself, as ProcessWait::may_go_on, and make the one that another
  /// thread waits for. Known of a visible process with MPI_THREAD_MULTIPLE, or in which several threads have called
  /// MPI, if its calls have lasted for `help_seconds`.
  bool may_be_helped = false;
  // For a process that an observer saw end; the reader does not set them.
  int wait_status = -1;  ///< as of waitpid, or from the exit code in the record; -1: not known
  double ended = 0;      ///< when it was seen, seconds of the observer's clock; 0: not known
  /// `ended` is when the process closed its record, before its launcher could detect the end. So among the ranks of a
  /// host with this flag, the launcher did not end the first one because of another.
  bool ended_in_order = false;
  // For a rank on another host, which an agent reads; the reader does not set them.
  bool remote = false;
  double unheard = 0;    ///< seconds for which the agent has not answered; the snapshot is that old; 0: it answers
  bool partial = false;  ///< without what seldom changes; see snapshot_code.hpp
  std::int32_t launch_rank = -1, launch_size = 0;  ///< as the launcher says
  std::int32_t world_rank = -1;
  std::int32_t world_size = 0;
  /// The writer had the same table of functions. If not, every `function` is no_function.
  bool functions_known = false;
  std::optional<EndSnapshot> end;  ///< what the process has noted of its end: the first that it has noted
  /// Python frames in which the process has raised SystemExit, innermost first, as faulthandler writes them. It is not
  /// a fault, and the program may have caught it unless it ends. "": none, or the process has gone on.
  std::string system_exit;
  double ticks_per_second = 1;
  std::uint64_t anchor_ticks = 0;
  std::int64_t anchor_realtime = 0;  ///< nanoseconds
  std::uint64_t read_at = 0;         ///< ticks when the record was read
  std::uint32_t sampling = 1;
  std::uint64_t threads_dropped = 0, communicators_dropped = 0, requests_dropped = 0, peers_dropped = 0,
                epochs_dropped = 0, sites_dropped = 0;
  double ticks_per_record = 0;
  std::uint64_t other_sends = 0, other_receives = 0;  ///< messages that are not in `peers`
  std::uint64_t torn = 0;  ///< communicators and requests left out because they changed while they were read

  std::vector<ThreadSnapshot> threads;
  std::vector<CommunicatorSnapshot> communicators;  ///< by index, ascending
  std::vector<RequestSnapshot> requests;            ///< active ones
  std::vector<EpochSnapshot> epochs;
  std::vector<AmountsSnapshot> amounts;  ///< of the last calls that gave some, in no order
  std::vector<SiteSnapshot> sites;       ///< at their index
  std::vector<ModuleSnapshot> modules;   ///< at their index
  std::vector<PeerSnapshot> peers;
  std::vector<MessageSnapshot> messages;  ///< the last ones, or a share of them that other ranks have chosen too

  /// Null if there is none.
  const CommunicatorSnapshot* communicator(std::uint32_t index) const noexcept {
    for (const CommunicatorSnapshot& c : communicators)
      if (c.index == index) return &c;
    return nullptr;
  }
  /// True if it has noted a fault that ends it: its own, not an end that it was told.
  bool has_fault() const noexcept {
    if (!end || end->kind == EndKind::exit) return false;
    if (end->kind != EndKind::exception) return true;
    const bool succeeded = wait_status == 0;  // known once it has called exit()
    return !succeeded && (!alive || state >= ProcessState::finalizing);
  }
  /// Killed, or ended without MPI_Finalize, or by a fault after it.
  bool gone() const noexcept {
    if (alive || state != ProcessState::finalized) return !alive;
    // It may have called MPI_Finalize after exit(), but not if a call has ended it.
    const bool in_call = std::any_of(threads.begin(), threads.end(), [](const auto& thread) { return thread.in_mpi; });
    const bool ended_by_call = in_call && ((end && end->kind == EndKind::exit) || wait_status > 0);
    return ended_by_call || (end && end->kind == EndKind::signal);
  }
  /// Seconds of the clock of its host (CLOCK_REALTIME).
  double realtime(std::uint64_t ticks) const noexcept {
    const double after =
        ticks >= anchor_ticks ? static_cast<double>(ticks - anchor_ticks) : -static_cast<double>(anchor_ticks - ticks);
    return 1e-9 * static_cast<double>(anchor_realtime) + after / ticks_per_second;
  }
  /// Seconds from `ticks` of this record to the time when it was read; 0 if that is in the future or not known.
  double seconds_since(std::uint64_t ticks) const noexcept {
    return ticks > 1 && read_at > ticks ? static_cast<double>(read_at - ticks) / ticks_per_second : 0;
  }
};

/// The rank in MPI_COMM_WORLD; until MPI_Init has returned that of the launcher, by which MPI libraries number; -1: not
/// known.
inline std::int32_t number_of(const RankSnapshot& rank) noexcept {
  return rank.world_rank >= 0 || rank.state != ProcessState::starting ? rank.world_rank : rank.launch_rank;
}

/// The thread of a rank whose state describes it: the first one that has not ended; null if there is none. The initial
/// thread of a process stays as a zombie when it ends before others.
inline const ThreadSnapshot* main_thread(const RankSnapshot& rank) noexcept {
  for (const ThreadSnapshot& thread : rank.threads)
    if (thread.tid != 0 && thread.state != '?' && thread.state != 'Z') return &thread;
  return nullptr;
}

/// Two snapshots of one process.
inline bool same_process(const RankSnapshot& a, const RankSnapshot& b) noexcept {
  return a.pid == b.pid && a.process_start == b.process_start && a.pid_namespace == b.pid_namespace && a.host == b.host;
}

/// A process, as a key of hash tables.
struct ProcessKey {
  int pid;
  std::uint64_t start, pid_namespace;
  std::string host;
  explicit ProcessKey(const RankSnapshot& rank)
      : pid(rank.pid), start(rank.process_start), pid_namespace(rank.pid_namespace), host(rank.host) {}
  bool operator==(const ProcessKey&) const = default;
};
struct ProcessKeyHash {
  std::size_t operator()(const ProcessKey& key) const noexcept {
    return std::hash<std::string>()(key.host) ^ (key.start * 0x9e3779b97f4a7c15 + static_cast<unsigned>(key.pid));
  }
};

/// Null if there is none.
inline const EpochSnapshot* epoch_with(const RankSnapshot& rank, std::uint32_t window, std::int32_t other) noexcept {
  for (const EpochSnapshot& epoch : rank.epochs)
    if (epoch.window == window && epoch.rank == other) return &epoch;
  return nullptr;
}

}  // namespace bestride::inline telemetry
