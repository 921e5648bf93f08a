// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of fault kinds and clean variants, with the verdict that a fault detector has to give. Everything else in
// the program reads it: the options, the plan, --list and the tests.
#include <cstdint>
#include <span>
#include <string>

namespace fault_lab {

/// The first four are those of a usual run. A fault of one of the others adds its phase.
enum class Phase { halo, ring, collectives, farm, windows, groups, blocks, files };
inline constexpr int phase_count = 8, usual_phases = 4;
const char* name_of(Phase);

enum class Kind {
  // crash
  sigkill,
  sigsegv,
  sigabrt,
  reset_sigabrt,
  sigfpe,
  sigbus,
  sigill,
  sigterm,
  stack_overflow,
  out_of_memory,
  file_size_limit,
  disk_full,
  exit_0,
  exit_3,
  mpi_abort,
  // non-communication hang
  sigstop,
  spin,
  sleep,
  stuck_read,
  disk_full_retry,
  mutex_deadlock,
  all_stuck_read,
  all_file_lock,
  all_mutex,
  all_wait_for_child,
  all_wait_for_file,
  all_uninterruptible,
  all_poll,
  thread_holds_progress,
  // mismatch
  missing_collective,
  wrong_root,
  wrong_count,
  wrong_type,
  wrong_operation,
  tag_mismatch,
  early_finalize,
  missing_post,
  missing_complete,
  wrong_group,
  no_inter_root,
  two_inter_roots,
  wrong_inter_root,
  wrong_block,
  long_block,
  wrong_gather_block,
  wrong_scatter_block,
  missing_write,
  // deadlock
  communicator_order,
  cyclic_sends,
  start_before_post,
  missing_fence,
  lock_held,
  missing_close,
  // hang
  missing_receive,
  lost_result,
  any_source_starvation,
  nbx_message_too_many,
  nbx_left,
  forgotten_request,
  blocked_sender,
  early_message,
  old_wrong_tag,
  wrong_communicator,
  wrong_source,
  receive_too_many,
  wrong_destination,
  request_not_started,
  any_of_requests,
  probed_message,
  send_to_itself,
  // slow
  slow_5,
  slow_20,
  slow_100,
  cpu_quota,
  cpu_hog,
  // clean
  none,
  imbalance,
  checkpoint,
  checkpoint_one,
  debugger_pause,
  ptrace_pause,
  oversubscription,
  long_computation,
  computing_child,
  computing_thread,
  polling_computation,
  late_input,
  late_file,
  late_callback,
  polled_deadline,
  helper_thread,
  waiting_master,
  listener_thread,
  handled_error,
  nbx_late,
  forgotten_request_late,
  blocked_sender_late,
  early_message_late,
  old_tag_late,
  shift_late,
  receive_late,
  exchange_late,
  request_started_late,
  any_of_requests_late,
  probed_message_late,
  send_to_itself_late,
  overlapped_computation,
  event_loop,
  late_target,
  late_lock_holder,
  late_inter_root,
  late_blocks,
  late_writer,
};

enum class Class { crash, non_communication_hang, hang, deadlock, mismatch, slow, clean };
/// "crash", "non-communication hang", ...
const char* name_of(Class);

/// `with_next`: and the one after it, cyclically; `with_first`, `with_last`: and the first or last of all.
enum class Culprits { none, fault_rank, all, with_next, with_first, with_last };

/// Ranks on which a fault can happen.
enum class Place { any, master, worker };

/// How the job ends without a detector. `any`: a hang, an MPI error or wrong values, depending on the MPI library.
enum class End { ok, signal, exit, limit, wrong, any };
const char* name_of(End);

struct KindEntry {
  Kind kind;
  const char* name;
  Class verdict;
  Class also;  ///< a second verdict that is right, too; the same as `verdict` if there is none
  Culprits culprits;
  Place place;
  unsigned phases;  ///< bit 1 << Phase for each phase in which the fault can happen
  End end;
  int code;        ///< number of the signal, or exit code
  int ranks;       ///< least number of ranks
  bool threads;    ///< needs MPI_THREAD_MULTIPLE
  bool resumable;  ///< ends after --fault-seconds if that is given
  const char* description;
  const char* function = nullptr;  ///< in which the program ends; null if it is not known to itself
};

/// All kinds, in the order of the enumeration. Static storage.
std::span<const KindEntry> all_kinds();
const KindEntry& entry_of(Kind);
/// The rank, or all of them, does not come to its next MPI call, for a reason outside of MPI.
inline bool stalls(const KindEntry& entry) { return entry.verdict == Class::non_communication_hang && !entry.threads; }
/// All ranks hang in the same way, and none waits for another one.
inline bool stalls_all(const KindEntry& entry) { return stalls(entry) && entry.culprits == Culprits::all; }
/// Null if no kind has this name.
const KindEntry* find_kind(const std::string& name);

}  // namespace fault_lab
