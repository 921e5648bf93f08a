// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include <csignal>

namespace fault_lab {
namespace {

constexpr unsigned bit(Phase phase) { return 1u << int(phase); }
constexpr unsigned everywhere = (1u << phase_count) - 1;
constexpr unsigned in_halo = bit(Phase::halo), in_ring = bit(Phase::ring), in_collectives = bit(Phase::collectives),
                   in_farm = bit(Phase::farm);

constexpr KindEntry crash_kind(Kind kind, const char* name, End end, int code, const char* description) {
  return {kind, name, Class::crash, Class::crash, Culprits::fault_rank, Place::any, everywhere, end,
          code, 1,    false,        false,        description};
}

constexpr KindEntry stall_kind(Kind kind, const char* name, bool resumable, const char* description) {
  return {kind,
          name,
          Class::non_communication_hang,
          Class::non_communication_hang,
          Culprits::fault_rank,
          Place::any,
          everywhere,
          End::limit,
          0,
          1,
          false,
          resumable,
          description};
}

/// A fault of the program's use of MPI on two or more ranks.
constexpr KindEntry misuse_kind(Kind kind, const char* name, Class verdict, Class also, unsigned phases, End end,
                                const char* description) {
  return {kind, name, verdict, also, Culprits::fault_rank, Place::any, phases, end, 0, 2, false, false, description};
}

constexpr KindEntry slow_kind(Kind kind, const char* name, const char* description) {
  return {kind, name, Class::slow, Class::slow, Culprits::fault_rank, Place::any, everywhere, End::ok,
          0,    1,    false,       false,       description};
}

constexpr KindEntry clean_kind(Kind kind, const char* name, unsigned phases, bool threads, const char* description) {
  return {kind, name, Class::clean, Class::clean, Culprits::none, Place::any, phases, End::ok,
          0,    1,    threads,      false,        description};
}

constexpr KindEntry on(Place place, int ranks, KindEntry entry) {
  entry.place = place, entry.ranks = ranks;
  return entry;
}

/// Its verdict shows this function.
constexpr KindEntry in(const char* function, KindEntry entry) {
  entry.function = function;
  return entry;
}

constexpr KindEntry threaded(KindEntry entry) {
  entry.threads = true;
  return entry;
}

constexpr KindEntry all_are_culprits(KindEntry entry) {
  entry.culprits = Culprits::all;
  return entry;
}

constexpr KindEntry kinds[] = {
    crash_kind(Kind::sigkill, "sigkill", End::signal, SIGKILL,
               "the rank gets SIGKILL, as from the kernel's OOM killer"),
    in("write_null", crash_kind(Kind::sigsegv, "sigsegv", End::signal, SIGSEGV, "writes through a null pointer")),
    in("crash", crash_kind(Kind::sigabrt, "sigabrt", End::signal, SIGABRT, "calls abort()")),
    in("divide_by_zero", crash_kind(Kind::sigfpe, "sigfpe", End::signal, SIGFPE, "divides an integer by zero")),
    in("read_past_end", crash_kind(Kind::sigbus, "sigbus", End::signal, SIGBUS, "reads a mapped file past its end")),
    in("crash", crash_kind(Kind::sigill, "sigill", End::signal, SIGILL, "executes an invalid instruction")),
    crash_kind(Kind::sigterm, "sigterm", End::signal, SIGTERM, "gets SIGTERM, as from a batch system"),
    in("recurse",
       crash_kind(Kind::stack_overflow, "stack_overflow", End::signal, SIGSEGV, "recurses until the stack is full")),
    in("allocate_until_limit",
       crash_kind(Kind::out_of_memory, "out_of_memory", End::signal, SIGABRT,
                  "allocates until a limit of its address space; the exception ends the program")),
    crash_kind(Kind::file_size_limit, "file_size_limit", End::signal, SIGXFSZ,
               "writes a file past the limit of its size"),
    in("write_to_full_disk",
       crash_kind(Kind::disk_full, "disk_full", End::exit, 28, "a checkpoint fails with ENOSPC; exits with code 28")),
    crash_kind(Kind::exit_0, "exit_0", End::exit, 0, "calls _exit(0) without MPI_Finalize"),
    in("crash", crash_kind(Kind::exit_3, "exit_3", End::exit, 3, "calls exit(3) without MPI_Finalize")),
    in("crash", crash_kind(Kind::mpi_abort, "mpi_abort", End::exit, 5, "calls MPI_Abort with code 5")),

    stall_kind(Kind::sigstop, "sigstop", true, "stopped by SIGSTOP"),
    stall_kind(Kind::spin, "spin", true, "an infinite loop that uses the CPU"),
    stall_kind(Kind::sleep, "sleep", true, "sleeps"),
    stall_kind(Kind::stuck_read, "stuck_read", false, "blocked in read() of a FIFO that nobody writes"),
    stall_kind(Kind::disk_full_retry, "disk_full_retry", false, "repeats a write() that fails with ENOSPC"),
    stall_kind(Kind::mutex_deadlock, "mutex_deadlock", false, "locks a mutex that a finished thread left locked"),
    threaded(misuse_kind(Kind::thread_holds_progress, "thread_holds_progress", Class::non_communication_hang,
                         Class::hang, everywhere, End::limit,
                         "a second thread is frozen inside MPI and holds the lock that the main thread needs")),

    misuse_kind(Kind::missing_collective, "missing_collective", Class::mismatch, Class::hang, in_collectives, End::any,
                "the rank leaves out one allreduce, allgather or barrier"),
    misuse_kind(Kind::wrong_root, "wrong_root", Class::mismatch, Class::mismatch, in_collectives, End::any,
                "another root in one bcast or reduce"),
    misuse_kind(Kind::wrong_count, "wrong_count", Class::mismatch, Class::mismatch, in_collectives, End::any,
                "half the count in one allreduce"),
    misuse_kind(Kind::wrong_type, "wrong_type", Class::mismatch, Class::mismatch, in_collectives, End::wrong,
                "MPI_DOUBLE instead of MPI_UINT64_T in one allreduce"),
    misuse_kind(Kind::wrong_operation, "wrong_operation", Class::mismatch, Class::mismatch, in_collectives, End::wrong,
                "MPI_MAX instead of MPI_SUM in one allreduce"),
    misuse_kind(Kind::tag_mismatch, "tag_mismatch", Class::mismatch, Class::hang, in_halo | in_ring, End::limit,
                "sends one message with a tag that its receiver does not wait for"),
    misuse_kind(Kind::early_finalize, "early_finalize", Class::mismatch, Class::hang, everywhere, End::any,
                "calls MPI_Finalize and returns from main while the others go on"),

    misuse_kind(Kind::communicator_order, "communicator_order", Class::deadlock, Class::mismatch, in_collectives,
                End::limit, "an allreduce on each of two communicators, in the other order than all others"),
    all_are_culprits(misuse_kind(Kind::cyclic_sends, "cyclic_sends", Class::deadlock, Class::deadlock, in_ring,
                                 End::limit, "every rank calls MPI_Ssend to the next before it receives")),

    misuse_kind(Kind::missing_receive, "missing_receive", Class::hang, Class::deadlock, in_halo | in_ring, End::limit,
                "does not receive one message, which is sent synchronously"),
    on(Place::worker, 2,
       misuse_kind(Kind::lost_result, "lost_result", Class::hang, Class::deadlock, in_farm, End::limit,
                   "a worker does not send a result; the master waits for it with MPI_ANY_SOURCE")),
    on(Place::master, 3,
       misuse_kind(Kind::any_source_starvation, "any_source_starvation", Class::hang, Class::hang, in_farm, End::limit,
                   "the master probes with MPI_ANY_SOURCE but serves only worker 1; the other workers wait forever")),

    slow_kind(Kind::slow_5, "slow_5", "computes 5 % longer from the fault step on"),
    slow_kind(Kind::slow_20, "slow_20", "computes 20 % longer from the fault step on"),
    slow_kind(Kind::slow_100, "slow_100", "computes 100 % longer from the fault step on"),
    slow_kind(Kind::cpu_quota, "cpu_quota",
              "has --quota percent of a CPU, in periods of 100 ms, from the fault step on"),
    slow_kind(Kind::cpu_hog, "cpu_hog", "shares its core with a busy process from the fault step on"),

    clean_kind(Kind::none, "none", everywhere, false, "no fault"),
    clean_kind(Kind::imbalance, "imbalance", everywhere, false,
               "the computation of each rank, step and phase differs by up to 30 %, at random"),
    clean_kind(Kind::checkpoint, "checkpoint", everywhere, false,
               "every --checkpoint-every steps all ranks write for --checkpoint-seconds"),
    clean_kind(Kind::checkpoint_one, "checkpoint_one", everywhere, false,
               "as checkpoint, but only rank 0 writes and the others wait for it in a barrier"),
    clean_kind(Kind::debugger_pause, "debugger_pause", everywhere, false, "SIGSTOP, and SIGCONT after --pause-seconds"),
    clean_kind(Kind::ptrace_pause, "ptrace_pause", everywhere, false,
               "stopped through ptrace for --pause-seconds, as by a debugger"),
    clean_kind(Kind::oversubscription, "oversubscription", everywhere, false, "all ranks of a host share one core"),
    clean_kind(Kind::long_computation, "long_computation", everywhere, false,
               "all ranks compute for --pause-seconds without an MPI call"),
    on(Place::master, 2,
       clean_kind(Kind::waiting_master, "waiting_master", in_farm, false,
                  "the master waits with MPI_ANY_SOURCE while the workers compute for --pause-seconds")),
    clean_kind(Kind::listener_thread, "listener_thread", everywhere, true,
               "a second thread waits in a receive until the end of the run"),
    clean_kind(Kind::handled_error, "handled_error", everywhere, false,
               "an error handler leaves a call that has failed by longjmp()"),
};

}  // namespace

const char* name_of(Phase phase) {
  constexpr const char* names[phase_count] = {"halo", "ring", "collectives", "farm"};
  return names[int(phase)];
}

const char* name_of(Class verdict) {
  constexpr const char* names[] = {"crash", "non-communication hang", "hang", "deadlock", "mismatch", "slow", "clean"};
  return names[int(verdict)];
}

const char* name_of(End end) {
  constexpr const char* names[] = {"ok", "signal", "exit", "limit", "wrong", "any"};
  return names[int(end)];
}

std::span<const KindEntry> all_kinds() { return kinds; }

const KindEntry& entry_of(Kind kind) {
  static_assert(
      [] {
        for (std::size_t at = 0; at < std::size(kinds); ++at)
          if (kinds[at].kind != Kind(at)) return false;
        return std::size(kinds) == std::size_t(Kind::handled_error) + 1;
      }(),
      "one entry for each kind, in the order of the enumeration");
  return kinds[std::size_t(kind)];
}

const KindEntry* find_kind(const std::string& name) {
  for (const KindEntry& entry : kinds)
    if (name == entry.name) return &entry;
  return nullptr;
}

}  // namespace fault_lab
