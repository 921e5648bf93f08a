// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layout of a record file: what one rank is doing in MPI, written by the rank, read by other processes.
//
// One file per process in /dev/shm (job_folder.hpp), a shared mapping, so its content outlives the process: SIGKILL
// included. The writer takes no lock, makes no system call and allocates nothing during a call. By its sequence number
// a reader distinguishes a complete record from one that is being written or was overwritten while it was read. All
// offsets follow from the version, so a reader trusts no offset of a file. Times are ticks of the processor's counter
// (tick_clock.hpp). docs/record.md is this page for users of the format. Alternative considered: a ring per process
// that all threads share, which needs an atomic addition per call (20 cycles) and lets a suspended thread write into a
// record that belongs to another by then.
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace bestride::inline telemetry {

inline constexpr char record_magic[8] = {'b', 's', 't', 'r', 'r', 'e', 'c', '\0'};
inline constexpr std::uint32_t record_version = 14;
inline constexpr std::size_t record_file_bytes = 316 * 1024;

inline constexpr unsigned max_threads = 32;       ///< threads in MPI calls at one time; more are counted, not recorded
inline constexpr unsigned main_ring_size = 1024;  ///< calls remembered of the thread that made the first call
inline constexpr unsigned ring_size = 8;          ///< calls remembered of each other thread
inline constexpr unsigned max_communicators = 256;
inline constexpr unsigned max_requests = 1024;
inline constexpr unsigned max_probes = 4;  ///< different probes of a polling thread
inline constexpr unsigned max_peers = 512;
inline constexpr unsigned max_epochs = 256;    ///< pairs of a window and a rank
inline constexpr unsigned max_amounts = 2046;  ///< of a collective call with amounts that differ by rank
inline constexpr unsigned amounts_kept = 2;    ///< of so many of those calls, since others may be in the next one
inline constexpr unsigned max_messages = 512;  ///< large messages remembered, of all threads together
inline constexpr std::uint64_t least_message_bytes = 4096;  ///< smaller messages are only counted
inline constexpr unsigned max_sites = 512;
inline constexpr unsigned max_modules = 32;
inline constexpr unsigned max_frames = 512;
inline constexpr unsigned histogram_size = 12;

/// How calls and requests name a communicator: the index of its entry, and how often the entry was used before, because
/// it may be used again by another communicator after the call.
constexpr std::uint32_t communicator_id(std::uint32_t index, std::uint32_t uses) noexcept {
  return (uses & 0x7fffff) << 8 | index;
}
static_assert(max_communicators <= 256);

/// A request key that is being written.
inline constexpr std::uint64_t claimed_key = ~std::uint64_t{0};
inline constexpr std::uint16_t no_function = 0xffff;
inline constexpr std::uint32_t no_index = 0xffffffff;
/// Ranks that are none, independent of the MPI library's constants.
enum SpecialRank : std::int32_t { no_rank = -1, any_rank = -2, null_rank = -3, root_rank = -4 };
inline constexpr std::int32_t no_tag = -1;
inline constexpr std::int32_t any_tag = -2;

/// A field that its writer and readers access without a lock; each access is a plain load or store.
template <class T>
class Shared {
 public:
  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(T amount) noexcept { set(static_cast<T>(get() + amount)); }  ///< one writer only
  std::atomic<T>& atomic() noexcept { return value_; }
  const std::atomic<T>& atomic() const noexcept { return value_; }

 private:
  std::atomic<T> value_{};
  static_assert(std::atomic<T>::is_always_lock_free && sizeof(std::atomic<T>) == sizeof(T));
};

/// Reads and stores the fields of 8 bytes at once; the address of the first is a multiple of 8.
template <class Field>
[[gnu::always_inline]] inline std::uint64_t load_word(const Field& first) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  return __atomic_load_n(reinterpret_cast<const Word*>(&first), __ATOMIC_RELAXED);
}
template <class Field>
[[gnu::always_inline]] inline void store_word(Field& first, std::uint64_t word) noexcept {
  using Word [[gnu::may_alias]] = std::uint64_t;
  __atomic_store_n(reinterpret_cast<Word*>(&first), word, __ATOMIC_RELAXED);
}
template <class Field>
[[gnu::always_inline]] inline void store_pair(Field& first, std::uint32_t low, std::uint32_t high) noexcept {
  static_assert(std::endian::native == std::endian::little);
  store_word(first, low | std::uint64_t{high} << 32);
}

enum class ProcessState : std::uint32_t {
  starting = 0,     ///< before MPI_Init has returned
  initialized = 1,  ///< MPI is in use
  finalizing = 2,   ///< MPI_Finalize was called
  finalized = 3,    ///< MPI_Finalize has returned
};

/// Written once, before `magic`, except for the members marked Shared.
struct RecordHeader {
  std::atomic<std::uint64_t> magic;  ///< record_magic; stored last
  std::uint32_t version;
  std::uint32_t file_bytes;      ///< record_file_bytes
  std::uint32_t function_count;  ///< of the writer's table of MPI functions
  std::uint32_t function_hash;   ///< of their names in order; a reader with another table can't name functions
  std::int32_t pid;
  std::uint32_t uid;
  std::uint64_t process_start;  ///< field 22 of /proc/PID/stat, which tells a process from a later one with its pid
  char boot_id[40];             ///< /proc/sys/kernel/random/boot_id
  std::uint64_t pid_namespace;  ///< inode of /proc/thread-self/ns/pid: pids of other namespaces mean other processes
  Shared<double> ticks_per_second;  ///< more exact once MPI_Init has returned
  std::uint64_t anchor_ticks;       ///< read at the same time as the two clocks that follow
  std::int64_t anchor_monotonic;    ///< CLOCK_MONOTONIC, nanoseconds
  std::int64_t anchor_realtime;     ///< CLOCK_REALTIME, nanoseconds
  char host[64];
  char job[64];              ///< name of the job's folder
  char executable[256];      ///< /proc/thread-self/exe
  char abi[12];              ///< "mpich", ...
  std::uint32_t locked;      ///< 1: the process has locked the file (F_OFD_SETLK) until it ends
  char watcher[96];          ///< BESTRIDE_WATCHER: the process that watches the job; "" if none does
  char launch[96];           ///< what the launcher calls the job, the same on all its hosts; "" if it is not known
  std::int32_t launch_rank;  ///< the rank that the launcher gave the process; -1: not known
  std::int32_t launch_size;  ///< of how many; 0: not known

  Shared<std::uint32_t> state;      ///< ProcessState
  Shared<std::int32_t> world_rank;  ///< -1 until MPI_Init has returned
  Shared<std::int32_t> world_size;  ///< 0 until then
  Shared<std::uint32_t> threads;    ///< thread slots in use: [0, threads)
  Shared<std::uint32_t> sites;      ///< call sites in use
  Shared<std::uint32_t> modules;    ///< modules in use
  Shared<std::uint32_t> frames;     ///< stack frames in use
  Shared<std::uint32_t> sampling;   ///< one of so many calls is timed at its end, too; 1: all
  // What did not fit.
  Shared<std::uint64_t> threads_dropped;
  Shared<std::uint64_t> communicators_dropped;
  Shared<std::uint64_t> requests_dropped;
  Shared<std::uint64_t> peers_dropped;
  Shared<std::uint64_t> epochs_dropped;  ///< pairs of a window and a rank, and groups whose ranks are not known
  Shared<std::uint64_t> sites_dropped;
  Shared<double> ticks_per_record;  ///< measured cost of recording one call
  // Messages that no PeerRecord counts: of receives those from any source, and those whose peer is not known.
  Shared<std::uint64_t> other_sends;
  Shared<std::uint64_t> other_receives;
  Shared<std::uint64_t> messages;  ///< large messages written; message n is at index n % max_messages
  Shared<std::uint32_t> exited;    ///< 1 + the exit code once the process has called exit() or _exit(); 0: it has not
  std::uint32_t handle_bytes;      ///< of a handle in a WaitList: 4 or 8
  /// 1: several threads may be in MPI calls at the same time (MPI_THREAD_MULTIPLE), once MPI_Init has returned.
  Shared<std::uint32_t> concurrent;
};

/// One call, in a ring. `sequence` is 2n + 1 while the n-th call (from 0) of the thread is written, 2n + 2 once it is
/// whole. A call that has not returned has left == 0. The fields from `function` on form pairs of 8 bytes, which the
/// writer stores at once.
struct CallRecord {
  Shared<std::uint64_t> sequence;
  Shared<std::uint64_t> entered;  ///< ticks
  Shared<std::uint64_t> left;     ///< ticks; 0: in the call; 1: returned, not timed
  Shared<std::uint16_t> function;
  Shared<std::uint16_t> operation;     ///< reduction_code() (reduction.hpp); 0: none
  Shared<std::uint32_t> communicator;  ///< communicator_id(), or no_index
  Shared<std::int32_t> peer;           ///< destination, source or root, in the communicator; or a SpecialRank
  Shared<std::int32_t> tag;            ///< or no_tag, any_tag
  Shared<std::int32_t> second_peer;    ///< source of MPI_Sendrecv
  Shared<std::int32_t> second_tag;     ///< its receive tag; for calls that wait: the number of requests
  Shared<std::uint64_t> bytes;         ///< count times size of the type; what this rank sends, if it sends
  Shared<std::uint32_t> ordinal;       ///< of the collective on its communicator, from 1; 0: not a collective
  Shared<std::uint32_t> site;          ///< index, or no_index
};
static_assert(sizeof(CallRecord) == 64);

/// A probe that has found nothing: MPI_Iprobe, MPI_Improbe.
struct ProbeRecord {
  Shared<std::uint32_t> function;
  Shared<std::uint32_t> communicator;  ///< communicator_id(), or no_index
  Shared<std::int32_t> peer;           ///< source, or any_rank
  Shared<std::int32_t> tag;            ///< or any_tag
};

/// A thread that has made MPI calls. A slot is used again after its thread has ended.
///
/// What a thread polls is noted when it has made polling calls without success for a while and no other call: its
/// probes, and in the records of the requests that it tests poll_mark(). The notes hold while `calls` is `noted_at`.
struct ThreadRecord {
  Shared<std::uint32_t> tid;            ///< 0: free
  Shared<std::uint32_t> poll_function;  ///< of the last polling call
  Shared<std::uint64_t> calls;          ///< calls begun; the ring holds the last ones; call n is at index n % ring size
  Shared<std::uint64_t> wait_list;      ///< wait_list_of() the last call for which the thread's WaitList was written
  Shared<std::uint64_t> polls;          ///< polling calls that found nothing
  Shared<std::uint64_t> last_left;      ///< ticks at which the last timed call returned
  Shared<std::uint64_t> noted_since;    ///< `polls` when it was begun to note what the thread polls
  Shared<std::uint32_t> noted_at;       ///< lower half of `calls` at that time
  Shared<std::uint32_t> noted;          ///< probes noted, and bits of Polled
  ProbeRecord probes[max_probes];
  std::uint32_t reserved[2];
};
static_assert(sizeof(ThreadRecord) == 128);

/// ThreadRecord::noted.
enum Polled : std::uint32_t {
  polled_probes = 0xff,    ///< mask: how many probes are noted
  polled_others = 0x100,   ///< it also polls what is not noted
  polled_several = 0x200,  ///< its polling calls are not always the same one
};

/// RequestRecord::waiter of a request that a thread polls: its slot, and the lower bits of ThreadRecord::noted_at.
inline constexpr std::uint16_t poll_flag = 0x8000;
constexpr std::uint16_t poll_mark(std::uint32_t noted_at, unsigned slot) noexcept {
  return static_cast<std::uint16_t>(poll_flag | (noted_at & 0x3ff) << 5 | slot);
}
static_assert(max_threads <= 32);

/// The handles of the requests for which a thread waits: the first of the array that the program has passed, as they
/// are in its memory. They are written before the call's record and belong to the call while it is in progress.
/// Alternative considered: a mark in the record of each request, which needs a look-up of each before the call and
/// another store after it, and in a loop of MPI_Waitany is the larger part of the call.
inline constexpr std::size_t main_wait_list_bytes = 8192;  ///< of the thread that made the first call
inline constexpr std::size_t wait_list_bytes = 512;        ///< of each other thread
/// ThreadRecord::wait_list of the n-th call (from 0), whose list has so many handles.
constexpr std::uint64_t wait_list_of(std::uint64_t n, std::uint64_t handles) noexcept {
  return (n + 1) << 16 | handles;
}

enum class CommunicatorKind : std::uint32_t { free = 0, intra = 1, inter = 2, window = 3, file = 4 };
/// Added to the kind of an entry whose communicator was freed: the last ones are kept, because finished calls name
/// them.
inline constexpr std::uint32_t freed_flag = 0x80;
inline constexpr unsigned max_freed = 16;

/// A communicator, or a window or file, whose collective calls are counted like those of a communicator. `kind` is
/// written last and cleared first.
struct CommunicatorRecord {
  Shared<std::uint64_t> uid;         ///< the same on all members (interpose/recording/communicators.hpp); 0: not known
  Shared<std::uint64_t> parent_uid;  ///< 0: none
  /// Collective calls that this rank has begun, in the lower 32 bits; in the upper ones the hash of its reductions
  /// among them (add_to_hash() of reduction.hpp). One field, because a reader needs both of the same moment.
  Shared<std::uint64_t> collectives;
  /// Size of the group whose ranks the calls name: of an intercommunicator the remote one.
  Shared<std::int32_t> size;
  Shared<std::int32_t> rank;          ///< of this process, in its own group
  Shared<std::int32_t> first_member;  ///< rank in MPI_COMM_WORLD of member 0; -1: not known
  Shared<std::int32_t> stride;        ///< member i is first_member + i * stride; 0: members are not evenly spaced
  Shared<std::uint32_t>
      kind;  ///< CommunicatorKind, perhaps freed_flag, in the upper 24 bits the uses of the entry before
  Shared<std::uint32_t> site;       ///< the place that created it, or no_index
  Shared<std::int32_t> local_size;  ///< of an intercommunicator: of the process's own group; else 0
  Shared<std::uint32_t> side;       ///< of an intercommunicator: 0 or 1, the own group, which all members number alike
  char name[40];                    ///< given by the program, of a file that of the file; cut; "" if there is none
};
static_assert(sizeof(CommunicatorRecord) == 96);

/// How often this rank has begun to synchronize with another on a window by post, start, complete and wait. A call that
/// waits for the other rank has returned when the counter of its counterpart there has reached its own.
struct EpochRecord {
  /// communicator_id() of the window << 32 | rank + 1 in MPI_COMM_WORLD; 0: free.
  Shared<std::uint64_t> key;
  Shared<std::uint32_t> posts;      ///< calls of MPI_Win_post for a group with the rank
  Shared<std::uint32_t> starts;     ///< the same of MPI_Win_start
  Shared<std::uint32_t> completes;  ///< of these, access epochs that MPI_Win_complete ends
  Shared<std::uint32_t> reserved;
};
static_assert(sizeof(EpochRecord) == 24);

/// What this rank sends to each other one, and expects of it, in a collective call whose amounts may differ between
/// pairs of ranks, such as MPI_Alltoallv. The call that follows is written over the older record. One call at a time;
/// others are left out.
struct AmountsRecord {
  Shared<std::uint32_t> version;  ///< odd while it is written; the older record has the lower one, or is the first
  Shared<std::uint32_t> communicator;
  Shared<std::uint32_t> ordinal;  ///< 0: there was none
  Shared<std::uint16_t> sent;     ///< numbers of values: of each rank, 1 if there is only one; 0: none, or not known
  Shared<std::uint16_t> received;
  Shared<std::uint32_t> values[max_amounts];  ///< bytes sent, then bytes expected; unknown_amount
};
inline constexpr std::uint32_t unknown_amount = 0xffffffff;  ///< also of larger amounts

/// A request that was not complete when it was last looked at. Its key, the handle, is in RecordFile::request_keys at
/// the same index; 0 or claimed_key: free.
struct RequestRecord {
  Shared<std::uint64_t> posted;  ///< ticks
  Shared<std::uint64_t> bytes;
  Shared<std::uint16_t> function;
  Shared<std::uint16_t> operation;
  Shared<std::uint32_t> communicator;
  Shared<std::int32_t> peer;
  Shared<std::int32_t> tag;
  Shared<std::uint32_t> ordinal;
  Shared<std::uint32_t> number;   ///< of the message among those to, or from, its peer, from 1; 0: not known
  Shared<std::uint16_t> active;   ///< 0: an inactive persistent request
  Shared<std::uint16_t> handles;  ///< requests of this handle: MPICH gives one handle to several complete sends
  /// MessageRecord::peer + 1 of a large message that is to be remembered when it completes, else 0.
  Shared<std::uint16_t> message;
  /// 1 + the slot of a thread that waits for it, and for more requests than its WaitList holds; poll_mark(); else 0.
  Shared<std::uint16_t> waiter;
};
static_assert(sizeof(RequestRecord) == 48);

/// Messages to and from one peer whose calls named it; for receives, the bytes of the buffer. A blocking call counts
/// when it returns, a nonblocking or persistent one when it is started.
struct PeerRecord {
  /// Rank + 1 in MPI_COMM_WORLD; if that is not known, (communicator index + 1) << 32 | rank + 1 in it. 0: free.
  Shared<std::uint64_t> key;
  Shared<std::uint64_t> sent_messages;
  Shared<std::uint64_t> sent_bytes;
  Shared<std::uint64_t> received_messages;
  Shared<std::uint64_t> received_bytes;
};
static_assert(sizeof(PeerRecord) == 40);

/// A finished large message. Sender and receiver choose the same ones by the message's number (message_log.hpp). Times
/// are in units of 16 ticks, so that messages that one call completed have the same end.
struct MessageRecord {
  Shared<std::uint64_t> posted;
  Shared<std::uint32_t> waited;     ///< after `posted`: the call that completed it began; as `completed` for a poll
  Shared<std::uint32_t> completed;  ///< after `posted`: that call returned; largest value: not less
  Shared<std::uint32_t> bytes;      ///< for a receive, the buffer size; largest value: at least that
  Shared<std::uint32_t> number;     ///< as RequestRecord::number
  Shared<std::uint16_t> sequence;   ///< message_sequence() of message n once it is whole, odd while it is written
  Shared<std::uint16_t> peer;       ///< index in RecordFile::peers, with received_flag if it was received
  Shared<std::uint16_t> together;   ///< requests that the same call completed; of MPI_Sendrecv its messages
  Shared<std::uint16_t> tag;        ///< folded_tag()
};
static_assert(sizeof(MessageRecord) == 32);
inline constexpr std::uint16_t received_flag = 0x8000;
inline constexpr unsigned message_tick_shift = 4;
static_assert(max_peers <= received_flag);
constexpr std::uint16_t message_sequence(std::uint64_t n) noexcept {
  return static_cast<std::uint16_t>(2 * (n / max_messages) + 2);
}
/// Equal for equal tags; 0xffff for any_tag only.
constexpr std::uint16_t folded_tag(std::int32_t tag) noexcept {
  return tag < 0 ? 0xffff : static_cast<std::uint16_t>(static_cast<std::uint32_t>(tag) % 0xffff);
}

/// A place in the program that makes an MPI call.
struct SiteRecord {
  Shared<std::uint64_t> address;  ///< return address minus 1 minus the module's load address
  Shared<std::uint16_t> module;   ///< index
  Shared<std::uint16_t> function;
  Shared<std::uint32_t> frame;  ///< innermost frame of the stack that was first seen there, or no_index
  Shared<std::uint64_t> calls;
  Shared<std::uint64_t> bytes;
  Shared<std::uint64_t> ticks;
  Shared<std::uint64_t> most_ticks;
  Shared<std::uint32_t>
      histogram[histogram_size];  ///< timed calls by duration: 0 below about 1 us, each other 4 times its predecessor's
};
static_assert(sizeof(SiteRecord) == 96);

/// How calls were served: bits.
enum Served : std::uint16_t {
  served_by_mpi = 1,  ///< forwarded unchanged
  served_packed = 2,
  served_respelled = 4,
  served_from_device = 8,  ///< device memory, by one of the transfer methods
  served_in_one_node = 16,
  served_hierarchically = 32,
  served_by_engine = 64,  ///< forwarded unchanged; fragments packed in place of the MPI library
};

/// A frame of a call stack; frames with the same callers are shared (a trie).
struct FrameRecord {
  std::uint64_t address;  ///< as SiteRecord::address
  std::uint32_t module;
  std::uint32_t caller;  ///< index of the next outer frame, or no_index
};
static_assert(sizeof(FrameRecord) == 16);

/// A loaded object.
struct ModuleRecord {
  std::uint64_t load_address;
  std::uint8_t build_id[20];
  std::uint32_t build_id_bytes;  ///< 0: none
  char path[96];                 ///< its end, if it is longer
};
static_assert(sizeof(ModuleRecord) == 128);

/// What the library did with the calls of a site, as far as they were examined for the end-of-job report; nothing
/// without one. Indices are those of RecordFile::sites.
struct SiteEffects {
  Shared<float> saved_seconds[max_sites];   ///< as LedgerLine::saved_seconds; may be negative
  Shared<std::uint16_t> served[max_sites];  ///< bits of Served
};

/// What a process notes of its own end, before it is ended.
enum class EndKind : std::uint32_t {
  mpi_error = 0,  ///< an error that the MPI library passes to an error handler; ended by it if it does not return
  signal = 1,     ///< of a fault or of abort(), whose action is the default or that of a library that reports it
  exit = 2,       ///< the process has called exit() before MPI_Finalize, perhaps because it was told to end
  exception = 3,  ///< of a Python program that nobody catches; the process ends unless the program embeds Python
  system_exit =
      4,  ///< a Python program has raised SystemExit, as sys.exit() does; the process ends unless it is caught
};
inline constexpr unsigned end_kinds = 5;

/// One for each EndKind. `calls` is stored last and cleared first.
struct EndNote {
  Shared<std::uint64_t> calls;   ///< 1 + the calls that its thread had begun; 0: there is no note
  Shared<std::uint64_t> at;      ///< ticks
  Shared<std::uint32_t> thread;  ///< slot, or no_index
  Shared<std::int32_t> code;     ///< class of the MPI error, number of the signal, exit code, or 0
  char text[488];                ///< of the error, what is known of the fault, or the exception and then its
                                 ///< frames, innermost first; lines end with '\n'. system_exit: the frames as
                                 ///< faulthandler writes them
};
static_assert(sizeof(EndNote) == 512);

struct RecordFile {
  RecordHeader header;
  alignas(64) SiteEffects effects;
  alignas(4096) ThreadRecord threads[max_threads];
  alignas(64) CallRecord main_ring[main_ring_size];
  CallRecord rings[max_threads - 1][ring_size];  ///< of thread slots from 1
  alignas(64) CommunicatorRecord communicators[max_communicators];
  alignas(64) Shared<std::uint64_t> request_keys[max_requests];
  RequestRecord requests[max_requests];
  PeerRecord peers[max_peers];
  EpochRecord epochs[max_epochs];
  alignas(32) MessageRecord messages[max_messages];
  alignas(64) SiteRecord sites[max_sites];
  SiteRecord other_sites;  ///< calls and bytes of the places that did not fit
  ModuleRecord modules[max_modules];
  FrameRecord frames[max_frames];
  alignas(64) EndNote ends[end_kinds];
  alignas(64) AmountsRecord amounts[amounts_kept];
  alignas(64) unsigned char main_wait_list[main_wait_list_bytes];
  unsigned char wait_lists[max_threads - 1][wait_list_bytes];  ///< of thread slots from 1

  unsigned char* wait_list(unsigned thread) noexcept { return thread == 0 ? main_wait_list : wait_lists[thread - 1]; }
  const unsigned char* wait_list(unsigned thread) const noexcept {
    return const_cast<RecordFile*>(this)->wait_list(thread);
  }
  static constexpr std::size_t bytes_of_wait_list(unsigned thread) noexcept {
    return thread == 0 ? main_wait_list_bytes : wait_list_bytes;
  }
  CallRecord& call(unsigned thread, std::uint64_t number) noexcept {
    return thread == 0 ? main_ring[number % main_ring_size] : rings[thread - 1][number % ring_size];
  }
  const CallRecord& call(unsigned thread, std::uint64_t number) const noexcept {
    return const_cast<RecordFile*>(this)->call(thread, number);
  }
};
static_assert(sizeof(RecordFile) <= record_file_bytes);
static_assert(offsetof(RecordFile, threads) == 4096);

}  // namespace bestride::inline telemetry
