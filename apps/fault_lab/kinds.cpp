// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include <csignal>

namespace fault_lab {
namespace {

constexpr unsigned bit(Phase phase) { return 1u << int(phase); }
constexpr unsigned everywhere = (1u << usual_phases) - 1;
constexpr unsigned in_halo = bit(Phase::halo), in_ring = bit(Phase::ring), in_collectives = bit(Phase::collectives),
                   in_farm = bit(Phase::farm), in_windows = bit(Phase::windows), in_groups = bit(Phase::groups),
                   in_blocks = bit(Phase::blocks), in_files = bit(Phase::files);

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

/// A message that never comes, in an exchange of so many ranks at least.
constexpr KindEntry message_kind(Kind kind, const char* name, int ranks, const char* description) {
  KindEntry entry = misuse_kind(kind, name, Class::hang, Class::deadlock, in_ring, End::limit, description);
  entry.ranks = ranks;
  return entry;
}

/// A correct exchange of a form in which a message can be missing: `description` says which. The rank is late by
/// --pause-seconds.
constexpr KindEntry late_kind(Kind kind, const char* name, int ranks, const char* description) {
  KindEntry entry = clean_kind(kind, name, in_ring, false, description);
  entry.ranks = ranks;
  return entry;
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

constexpr KindEntry with(Culprits culprits, KindEntry entry) {
  entry.culprits = culprits;
  return entry;
}

constexpr KindEntry kinds[] = {
    crash_kind(Kind::sigkill, "sigkill", End::signal, SIGKILL,
               "the rank gets SIGKILL, as from the kernel's OOM killer"),
    in("write_null", crash_kind(Kind::sigsegv, "sigsegv", End::signal, SIGSEGV, "writes through a null pointer")),
    in("crash", crash_kind(Kind::sigabrt, "sigabrt", End::signal, SIGABRT, "calls abort()")),
    in("crash", crash_kind(Kind::reset_sigabrt, "reset_sigabrt", End::signal, SIGABRT,
                           "restores the default action of SIGABRT and calls abort(), as libgfortran does")),
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
    in("crash", crash_kind(Kind::exit_0, "exit_0", End::exit, 0, "calls _exit(0) without MPI_Finalize")),
    in("crash", crash_kind(Kind::exit_3, "exit_3", End::exit, 3, "calls exit(3) without MPI_Finalize")),
    in("crash", crash_kind(Kind::mpi_abort, "mpi_abort", End::exit, 5, "calls MPI_Abort with code 5")),

    stall_kind(Kind::sigstop, "sigstop", true, "stopped by SIGSTOP"),
    stall_kind(Kind::spin, "spin", true, "an infinite loop that uses the CPU"),
    stall_kind(Kind::sleep, "sleep", true, "sleeps"),
    stall_kind(Kind::stuck_read, "stuck_read", false, "blocked in read() of a FIFO that nobody writes"),
    stall_kind(Kind::disk_full_retry, "disk_full_retry", false, "repeats a write() that fails with ENOSPC"),
    stall_kind(Kind::mutex_deadlock, "mutex_deadlock", false, "locks a mutex that a finished thread left locked"),
    in("read_fifo", all_are_culprits(stall_kind(Kind::all_stuck_read, "all_stuck_read", false,
                                                "all ranks are blocked in read() of a FIFO that nobody writes"))),
    in("lock_file_twice", all_are_culprits(stall_kind(Kind::all_file_lock, "all_file_lock", false,
                                                      "all ranks wait for a lock of a file (flock or fcntl)"))),
    in("lock_twice",
       all_are_culprits(stall_kind(Kind::all_mutex, "all_mutex", false, "mutex_deadlock on all ranks at once"))),
    in("wait_for_end", all_are_culprits(stall_kind(Kind::all_wait_for_child, "all_wait_for_child", false,
                                                   "all ranks wait for a child process that does nothing"))),
    in("wait_for_file", all_are_culprits(stall_kind(Kind::all_wait_for_file, "all_wait_for_file", false,
                                                    "all ranks look twice a second for a file that does not come"))),
    all_are_culprits(
        stall_kind(Kind::all_uninterruptible, "all_uninterruptible", false, "all ranks wait in the kernel in state D")),
    in("poll_for_message", all_are_culprits(stall_kind(Kind::all_poll, "all_poll", false,
                                                       "all ranks call MPI_Iprobe for a message that nobody sends"))),
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
    in("windows",
       misuse_kind(Kind::missing_post, "missing_post", Class::mismatch, Class::mismatch, in_windows, End::limit,
                   "leaves out MPI_Win_post, for which the rank before it waits in MPI_Win_start")),
    in("windows",
       misuse_kind(Kind::missing_complete, "missing_complete", Class::mismatch, Class::mismatch, in_windows, End::limit,
                   "leaves out MPI_Win_complete, for which the next rank waits in MPI_Win_wait")),
    on(Place::any, 3,
       misuse_kind(Kind::wrong_group, "wrong_group", Class::mismatch, Class::mismatch, in_windows, End::limit,
                   "calls MPI_Win_start for another rank than the one that has posted")),
    misuse_kind(Kind::no_inter_root, "no_inter_root", Class::mismatch, Class::mismatch, in_groups, End::limit,
                "the root of a bcast on an intercommunicator passes MPI_PROC_NULL instead of MPI_ROOT"),
    on(Place::any, 4,
       misuse_kind(Kind::two_inter_roots, "two_inter_roots", Class::mismatch, Class::mismatch, in_groups, End::any,
                   "a second rank passes MPI_ROOT in a bcast on an intercommunicator")),
    on(Place::any, 4,
       misuse_kind(Kind::wrong_inter_root, "wrong_inter_root", Class::mismatch, Class::mismatch, in_groups, End::any,
                   "names another root in a bcast on an intercommunicator")),
    with(Culprits::with_next,
         misuse_kind(Kind::wrong_block, "wrong_block", Class::mismatch, Class::mismatch, in_blocks, End::limit,
                     "sends nothing to the next rank in an alltoallv, which expects something")),
    with(Culprits::with_next,
         misuse_kind(Kind::long_block, "long_block", Class::mismatch, Class::mismatch, in_blocks, End::any,
                     "sends one word more to the next rank in an alltoallv than it expects")),
    on(Place::worker, 2,
       with(Culprits::with_first,
            misuse_kind(Kind::wrong_gather_block, "wrong_gather_block", Class::mismatch, Class::mismatch, in_blocks,
                        End::limit, "sends nothing in a gatherv, although the root expects something"))),
    on(Place::master, 2,
       with(Culprits::with_last,
            misuse_kind(Kind::wrong_scatter_block, "wrong_scatter_block", Class::mismatch, Class::mismatch, in_blocks,
                        End::limit, "the root of a scatterv sends nothing to the last rank, which expects something"))),
    misuse_kind(Kind::missing_write, "missing_write", Class::mismatch, Class::deadlock, in_files, End::any,
                "leaves out one MPI_File_write_at_all"),

    misuse_kind(Kind::communicator_order, "communicator_order", Class::deadlock, Class::mismatch, in_collectives,
                End::limit, "an allreduce on each of two communicators, in the other order than all others"),
    all_are_culprits(misuse_kind(Kind::cyclic_sends, "cyclic_sends", Class::deadlock, Class::deadlock, in_ring,
                                 End::limit, "every rank calls MPI_Ssend to the next before it receives")),
    all_are_culprits(misuse_kind(Kind::start_before_post, "start_before_post", Class::deadlock, Class::deadlock,
                                 in_windows, End::limit, "every rank calls MPI_Win_start before MPI_Win_post")),
    in("windows", misuse_kind(Kind::missing_fence, "missing_fence", Class::deadlock, Class::mismatch, in_windows,
                              End::limit, "leaves out one MPI_Win_fence")),
    in("windows", misuse_kind(Kind::lock_held, "lock_held", Class::deadlock, Class::deadlock, in_windows, End::limit,
                              "waits in a barrier while it holds the lock of a window that the others want")),
    misuse_kind(Kind::missing_close, "missing_close", Class::deadlock, Class::mismatch, in_files, End::any,
                "calls a barrier instead of MPI_File_close"),

    misuse_kind(Kind::missing_receive, "missing_receive", Class::hang, Class::deadlock, in_halo | in_ring, End::limit,
                "does not receive one message, which is sent synchronously"),
    on(Place::worker, 2,
       misuse_kind(Kind::lost_result, "lost_result", Class::hang, Class::deadlock, in_farm, End::limit,
                   "a worker does not send a result; the master waits for it with MPI_ANY_SOURCE")),
    on(Place::master, 3,
       misuse_kind(Kind::any_source_starvation, "any_source_starvation", Class::hang, Class::hang, in_farm, End::limit,
                   "the master probes with MPI_ANY_SOURCE but serves only worker 1; the other workers wait forever")),
    message_kind(Kind::nbx_message_too_many, "nbx_message_too_many", 2,
                 "in a sparse exchange (MPI_Iprobe, MPI_Ibarrier) it polls for a message more than are sent"),
    message_kind(Kind::nbx_left, "nbx_left", 2, "leaves a sparse exchange without its barrier, which others poll"),
    message_kind(Kind::forgotten_request, "forgotten_request", 2,
                 "leaves a message out; its receiver polls one request and has forgotten another one"),
    message_kind(Kind::blocked_sender, "blocked_sender", 3,
                 "leaves a message out; a third rank is blocked in its send to the rank that waits for the message"),
    message_kind(Kind::early_message, "early_message", 3,
                 "leaves a message out; the rank that waits for it has sent a message that is received last"),
    message_kind(Kind::old_wrong_tag, "old_wrong_tag", 2,
                 "sends a message with another tag, and 60 others before its receiver waits for it"),
    message_kind(Kind::wrong_communicator, "wrong_communicator", 2, "sends a message on another communicator"),
    message_kind(Kind::wrong_source, "wrong_source", 3, "receives from another rank than the one that sends"),
    message_kind(Kind::receive_too_many, "receive_too_many", 2, "receives one message more than is sent"),
    message_kind(Kind::wrong_destination, "wrong_destination", 3, "sends to another rank in MPI_Sendrecv"),
    message_kind(Kind::request_not_started, "request_not_started", 2, "does not start its persistent send"),
    message_kind(Kind::any_of_requests, "any_of_requests", 2,
                 "leaves a message out; its receiver is in MPI_Waitany or MPI_Waitsome, or polls with MPI_Testany or "
                 "MPI_Testsome"),
    message_kind(Kind::probed_message, "probed_message", 2,
                 "leaves a message out; its receiver is in MPI_Probe or MPI_Mprobe, or polls with MPI_Iprobe or "
                 "MPI_Improbe"),
    misuse_kind(Kind::send_to_itself, "send_to_itself", Class::deadlock, Class::hang, in_ring, End::limit,
                "sends to itself with MPI_Issend without a receive"),

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
    clean_kind(Kind::computing_child, "computing_child", everywhere, false,
               "all ranks wait for a child process that computes for --pause-seconds"),
    clean_kind(Kind::computing_thread, "computing_thread", everywhere, false,
               "all ranks wait for a thread that computes for --pause-seconds"),
    clean_kind(Kind::polling_computation, "polling_computation", everywhere, false,
               "all ranks compute for --pause-seconds and call MPI_Iprobe every 100 us"),
    clean_kind(Kind::late_input, "late_input", everywhere, false,
               "all ranks read a pipe for --pause-seconds, into which a byte is written twice a second"),
    clean_kind(Kind::late_file, "late_file", everywhere, false,
               "all ranks look twice a second for a file that comes after --pause-seconds"),
    clean_kind(Kind::late_callback, "late_callback", everywhere, false,
               "one rank computes for --pause-seconds in the function that MPI_Comm_dup calls to copy an attribute"),
    clean_kind(Kind::polled_deadline, "polled_deadline", everywhere, false,
               "one rank tests a receive for --pause-seconds and then sends what the other one waits for"),
    clean_kind(
        Kind::helper_thread, "helper_thread", everywhere, true,
        "one rank waits for a message, while its other thread sleeps and then sends what the other rank waits for"),
    on(Place::master, 2,
       clean_kind(Kind::waiting_master, "waiting_master", in_farm, false,
                  "the master waits with MPI_ANY_SOURCE while the workers compute for --pause-seconds")),
    clean_kind(Kind::listener_thread, "listener_thread", everywhere, true,
               "a second thread waits in a receive until the end of the run"),
    clean_kind(Kind::handled_error, "handled_error", everywhere, false,
               "collective calls fail and return; an error handler leaves a call that has failed by longjmp()"),
    late_kind(Kind::nbx_late, "nbx_late", 2, "a sparse exchange (MPI_Iprobe, MPI_Ibarrier); one rank is late"),
    late_kind(Kind::forgotten_request_late, "forgotten_request_late", 2,
              "the exchange of forgotten_request; one rank is late"),
    late_kind(Kind::blocked_sender_late, "blocked_sender_late", 3, "the exchange of blocked_sender; one rank is late"),
    late_kind(Kind::early_message_late, "early_message_late", 3, "the exchange of early_message; one rank is late"),
    late_kind(Kind::old_tag_late, "old_tag_late", 2, "the exchange of old_wrong_tag; one rank is late"),
    late_kind(Kind::shift_late, "shift_late", 2, "the exchange of wrong_communicator; one rank is late"),
    late_kind(Kind::receive_late, "receive_late", 3, "the exchange of wrong_source; one rank is late"),
    late_kind(Kind::exchange_late, "exchange_late", 3, "the exchange of wrong_destination; one rank is late"),
    late_kind(Kind::request_started_late, "request_started_late", 2,
              "the exchange of request_not_started; one rank is late"),
    late_kind(Kind::any_of_requests_late, "any_of_requests_late", 2,
              "the exchange of any_of_requests; one rank is late"),
    late_kind(Kind::probed_message_late, "probed_message_late", 2, "the exchange of probed_message; one rank is late"),
    late_kind(Kind::send_to_itself_late, "send_to_itself_late", 2, "the exchange of send_to_itself; one rank is late"),
    late_kind(Kind::overlapped_computation, "overlapped_computation", 2,
              "a receive that the rank tests while it computes; the sender waits for the rank"),
    late_kind(Kind::event_loop, "event_loop", 2, "the rank probes and sleeps in turn, while the others wait for it"),
    clean_kind(Kind::late_target, "late_target", in_windows, false,
               "one rank computes for --pause-seconds between MPI_Win_complete and MPI_Win_wait"),
    clean_kind(Kind::late_lock_holder, "late_lock_holder", in_windows, false,
               "one rank computes for --pause-seconds while it holds the lock of a window that the others want"),
    clean_kind(Kind::late_inter_root, "late_inter_root", in_groups, false,
               "one rank computes for --pause-seconds before a bcast on an intercommunicator"),
    clean_kind(Kind::late_blocks, "late_blocks", in_blocks, false,
               "one rank computes for --pause-seconds before an alltoallv"),
    clean_kind(Kind::late_writer, "late_writer", in_files, false,
               "one rank computes for --pause-seconds before an MPI_File_write_at_all"),
};

}  // namespace

const char* name_of(Phase phase) {
  constexpr const char* names[phase_count] = {"halo",    "ring",   "collectives", "farm",
                                              "windows", "groups", "blocks",      "files"};
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
        return std::size(kinds) == std::size_t(Kind::late_writer) + 1;
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
