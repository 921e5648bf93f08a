// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the detector says of a job: a fault, its ranks and the evidence.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "telemetry/waits/mismatch.hpp"

namespace bestride::inline telemetry {

enum class Fault : std::uint8_t {
  crash,               ///< a process ended before MPI_Finalize
  stopped,             ///< by a signal or a debugger
  mismatch,            ///< members of a communicator or window make different calls, or one has called MPI_Finalize
  unmatched_message,   ///< a rank waits for a message that its peer does not send or receive, and the peer went on
  deadlock,            ///< ranks wait for each other in a cycle
  computation_hang,    ///< a rank does not reach the MPI call that others wait for (non-communication hang), or no rank
                       ///< does anything
  communication_hang,  ///< every rank is in its call, and yet the calls do not end
  starvation,          ///< a rank makes other calls, but not the one that some ranks wait for
  slow,                ///< a rank has become slower than the others, which wait for it
  slow_communication,  ///< messages of a link, host or rank take longer than those of others
  unreachable,         ///< others wait for ranks of a host that does not answer
};
constexpr unsigned faults = 11;
/// "crash", "stopped", "mismatch", "unmatched message", "deadlock", "non-communication hang", "communication hang",
/// "starvation", "slow", "slow communication", "unreachable host".
const char* name(Fault fault) noexcept;

/// What the ranks in Finding::culprits do, from /proc.
enum class Cause : std::uint8_t {
  unknown,
  killed,           ///< ended by a signal, exited, or not known how
  aborted,          ///< called MPI_Abort
  mpi_error,        ///< ended by an error handler of the MPI library
  exception,        ///< ended by an exception of Python
  stopped,          ///< SIGSTOP, SIGTSTP
  traced,           ///< a debugger holds it
  uninterruptible,  ///< in the kernel, mostly for a file system
  computing,        ///< uses the CPU and makes no progress in MPI
  sleeping,         ///< sleeps in nanosleep, and uses no CPU
  blocked,          ///< sleeps in the kernel; of a rank for which others wait: all its threads wait for locks of the
                    ///< process, so that it can't go on
  waiting,          ///< sleeps in the kernel until a child process, another program, a signal or a time lets it go on
  transferring,     ///< reads or writes outside MPI
  starting,         ///< has not called MPI_Init
  finalized,        ///< is in MPI_Finalize or past it
  polling,          ///< makes only polling calls that find nothing
  in_mpi,           ///< is in an MPI call
};
/// "killed", ..., "MPI error", ...
const char* name(Cause cause) noexcept;

/// A message that was sent with another tag, or on another communicator, than its receiver waits for. Or one that was
/// left out, while the sender has gone on to the message with the tag `sent`. Ranks of MPI_COMM_WORLD.
struct TagMismatch {
  std::int32_t from = -1, to = -1;
  std::int32_t sent = 0, wanted = 0;
  bool other_communicator = false;
  bool left_out = false;
  bool by_receiver = false;  ///< by the tags of the messages before, it is the receiver that names a wrong one
};

/// A rank waits for a message that was sent to another rank, or that another rank than the one it names has sent. Ranks
/// of MPI_COMM_WORLD.
struct WrongPeer {
  std::int32_t from = -1, to = -1;  ///< the rank that has sent it, and the one that waits for it
  std::int32_t named = -1;          ///< whom the one that is wrong has named instead of the other one
  std::int32_t tag = 0;             ///< of the message
  bool by_receiver = false;         ///< `to` has named it, not `from`
};

/// A rank has begun an epoch of a window, and another one does not make its call for it. Ranks of MPI_COMM_WORLD.
struct EpochMismatch {
  std::int32_t waiter = -1, other = -1;
  std::uint16_t waits_in = no_function;  ///< the call in which `waiter` is
  const char* missing = "";              ///< "MPI_Win_post": what the other one has not called
  std::uint64_t window = 0;              ///< uid
  bool group = false;                    ///< `other` has called it, but for a group without `waiter`
};

/// A rank has left out a collective call, and has gone on to messages after it, or to a collective call on another
/// communicator. Ranks of MPI_COMM_WORLD.
struct OmittedCall {
  std::int32_t by = -1;
  std::uint16_t function = no_function;
  std::uint64_t communicator = 0;  ///< uid
  std::uint32_t ordinal = 0;       ///< of the call in which the others are
  bool receives = false;           ///< what is counted: receives or sends of the rank
  std::int64_t since = 0;          ///< since its last such call
  std::int64_t usual = 0;          ///< between the last three of them
  std::int32_t witness = -1;       ///< has come to the same call on another communicator after this one; -1: messages
};

enum class PathKind : std::uint8_t {
  link,          ///< messages from one node to another; nodes are hosts or ranks
  two_way_link,  ///< and back
  send,          ///< messages that a node sends
  receive,       ///< messages that it receives
  node,          ///< both
};
/// "link", "two-way link", "send", "receive", "send and receive".
const char* name(PathKind kind) noexcept;
constexpr bool is_link(PathKind kind) noexcept { return kind == PathKind::link || kind == PathKind::two_way_link; }

/// Where messages are slow, and how slow.
struct SlowPath {
  PathKind kind = PathKind::link;
  bool between_hosts = false;
  std::string host, other_host;             ///< if between hosts; of a link the sender's and the receiver's, else equal
  std::int32_t rank = -1, other_rank = -1;  ///< else
  double factor = 1;                        ///< how many times the delay of the others
  std::uint64_t messages = 0;               ///< that were measured in the last window
  std::uint32_t bytes = 0;                  ///< a size of which there are most
  double seconds = 0, typical = 0;          ///< delay of messages of this size, here and as the median of all pairs
  bool exact = true;                        ///< false: they were completed together with others

  /// Ignores the direction.
  bool same_as(const SlowPath& o) const noexcept {
    return is_link(kind) == is_link(o.kind) &&
           ((host == o.host && other_host == o.other_host && rank == o.rank && other_rank == o.other_rank) ||
            (host == o.other_host && other_host == o.host && rank == o.other_rank && other_rank == o.rank));
  }
};

/// Times are seconds of the observations' clock.
struct Finding {
  Fault fault = Fault::crash;
  Cause cause = Cause::unknown;
  std::vector<std::int32_t> culprits;  ///< ranks of MPI_COMM_WORLD, ascending
  std::vector<std::int32_t> held_up;   ///< ranks that wait for them, directly or through others, ascending
  bool whole_job = false;              ///< computation_hang: no rank does anything, and none waits for another one
  double since = 0;                    ///< when the culprits made their last progress; slow: when it began
  double confidence = 0;               ///< 0 to 1
  std::vector<std::int32_t> cycle;     ///< deadlock: each rank waits for the next one, the last one for the first
  std::optional<CollectiveMismatch> mismatch;
  std::optional<TagMismatch> tags;
  std::optional<WrongPeer> wrong_peer;
  std::optional<EpochMismatch> epoch;
  std::optional<OmittedCall> omitted;
  bool without_process = false;  ///< the culprits have ended before their first MPI call
  bool alone = false;        ///< unmatched message: the culprits wait in a send or receive that no other rank matches
  bool partitioned = false;  ///< unmatched message: partitioned sends of the culprits that are started and received
  double factor = 0;         ///< slow: how much longer than before the rank computes, compared with the others
  double cpu_share = -1;     ///< slow: of one core, now; -1: not known

  std::optional<SlowPath> path;  ///< slow communication; the culprits are the ranks at its ends

  bool same_as(const Finding& other) const noexcept {
    return fault == other.fault && culprits == other.culprits && whole_job == other.whole_job &&
           path.has_value() == other.path.has_value() && (!path || path->same_as(*other.path));
  }
};

}  // namespace bestride::inline telemetry
