// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of fault kinds and clean variants, with the verdict that a fault detector has to give. Everything else in
// the program reads it: the options, the plan, --list and the tests.
#include <cstdint>
#include <span>
#include <string>

namespace fault_lab {

enum class Phase { halo, ring, collectives, farm };
inline constexpr int phase_count = 4;
const char* name_of(Phase);

enum class Kind {
  // crash
  sigkill,
  sigsegv,
  sigabrt,
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
  thread_holds_progress,
  // mismatch
  missing_collective,
  wrong_root,
  wrong_count,
  wrong_type,
  wrong_operation,
  tag_mismatch,
  early_finalize,
  // deadlock
  communicator_order,
  cyclic_sends,
  // hang
  missing_receive,
  lost_result,
  any_source_starvation,
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
  waiting_master,
  listener_thread,
  handled_error,
};

enum class Class { crash, non_communication_hang, hang, deadlock, mismatch, slow, clean };
/// "crash", "non-communication hang", ...
const char* name_of(Class);

enum class Culprits { none, fault_rank, all };

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
/// The rank does not come to its next MPI call, for a reason outside of MPI.
inline bool stalls(const KindEntry& entry) { return entry.verdict == Class::non_communication_hang && !entry.threads; }
/// Null if no kind has this name.
const KindEntry* find_kind(const std::string& name);

}  // namespace fault_lab
