// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <csetjmp>
#include <csignal>
#include <cstdio>

#include "faults.hpp"

namespace fault_lab {
namespace {

constexpr int listener_tag = 7;
constexpr double piece_seconds = 100e-6;  ///< of computation between two polling calls

void pause_by_signal(Job& job) {
  job.companion.continue_after(job.options.pause_seconds);
  std::raise(SIGSTOP);
}

void pause_by_ptrace(Job& job) {
  if (!job.companion.trace(job.options.pause_seconds))
    std::fprintf(stderr, "fault_lab: ptrace is not permitted here; there was no pause\n");
}

jmp_buf after_failure;
void leave_call(MPI_Comm*, int*, ...) { std::longjmp(after_failure, 1); }

/// On all ranks but one, collective calls fail before they communicate: these take no part in the order of the calls.
/// The one has made the next call meanwhile.
void fail_in_collectives(Job& job) {
  int value = 1, sum = 0;
  if (job.rank != job.plan.rank) {
    MPI_Comm_set_errhandler(job.first, MPI_ERRORS_RETURN);
    for (int i = 0; i < 3; ++i) MPI_Bcast(&value, -1, MPI_INT, 0, job.first);
    MPI_Comm_set_errhandler(job.first, MPI_ERRORS_ARE_FATAL);
    usleep(static_cast<useconds_t>(1e6 * job.options.pause_seconds));
  }
  MPI_Reduce(&value, &sum, 1, MPI_INT, MPI_SUM, (job.plan.rank + 1) % job.ranks, job.first);
}

void fail_and_go_on() {
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(leave_call, &handler);
  MPI_Comm_set_errhandler(self, handler);
  MPI_Errhandler_free(&handler);
  if (setjmp(after_failure) == 0) MPI_Send(nullptr, 0, MPI_BYTE, 99, 0, self);
  MPI_Comm_free(&self);
}

void poll_and_compute(Job& job) {
  int found = 0;
  for (double left = job.options.pause_seconds; left > 0; left -= piece_seconds) {
    MPI_Iprobe(MPI_ANY_SOURCE, listener_tag, job.first, &found, MPI_STATUS_IGNORE);
    job.computation.run(piece_seconds);
  }
}

int copy_slowly(MPI_Comm, int, void* extra, void*, void*, int* copies) {
  Job& job = *static_cast<Job*>(extra);
  if (job.rank == job.plan.rank) job.computation.run(job.options.pause_seconds);
  return *copies = 0;  // MPI_SUCCESS
}

void duplicate_with_attribute(Job& job) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(copy_slowly, MPI_COMM_NULL_DELETE_FN, &key, &job);
  MPI_Comm duplicate;
  MPI_Comm_set_attr(job.first, key, &job);
  MPI_Comm_dup(job.first, &duplicate);
  MPI_Comm_free(&duplicate);
  MPI_Comm_delete_attr(job.first, key);
  MPI_Comm_free_keyval(&key);
}

/// The rank of the fault sends to the next one when it has polled, or its other thread has slept, long enough; before
/// that, the two seem to wait for each other.
void exchange_late(Job& job, bool by_thread) {
  const int next = (job.plan.rank + 1) % job.ranks;
  int value = 0;
  if (job.ranks == 1) return;
  if (job.rank == next) {
    MPI_Recv(&value, 1, MPI_INT, job.plan.rank, listener_tag, job.first, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, job.plan.rank, listener_tag, job.first);
  }
  if (job.rank != job.plan.rank) return;
  const auto pause = std::chrono::duration<double>(job.options.pause_seconds);
  const auto send = [&] { MPI_Send(&job.step, 1, MPI_INT, next, listener_tag, job.first); };
  if (by_thread) {
    std::thread helper([&] {
      std::this_thread::sleep_for(pause);
      send();
    });
    MPI_Recv(&value, 1, MPI_INT, next, listener_tag, job.first, MPI_STATUS_IGNORE);
    return helper.join();
  }
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, next, listener_tag, job.first, &request);
  const auto deadline = std::chrono::steady_clock::now() + pause;
  for (int done = 0; !done && std::chrono::steady_clock::now() < deadline;)
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  send();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

/// For `seconds`; a real one would be there then.
void look_for_file(double seconds) {
  for (; seconds > 0 && access("/nonexistent/fault_lab", F_OK) != 0; seconds -= 0.5) usleep(500000);
}

}  // namespace

void interrupt(Job& job) {
  if (!job.now(job.plan.kind)) return;
  switch (job.plan.kind) {
    case Kind::debugger_pause:
      if (job.trigger(job.plan.kind)) pause_by_signal(job);
      break;
    case Kind::ptrace_pause:
      if (job.trigger(job.plan.kind)) pause_by_ptrace(job);
      break;
    case Kind::long_computation:
      job.trigger(job.plan.kind);
      job.computation.run(job.options.pause_seconds);
      break;
    case Kind::computing_child:
      job.trigger(job.plan.kind);
      job.companion.compute(job.options.pause_seconds);
      break;
    case Kind::computing_thread:
      job.trigger(job.plan.kind);
      std::thread([&job] { job.computation.run(job.options.pause_seconds); }).join();
      break;
    case Kind::polling_computation:
      job.trigger(job.plan.kind);
      poll_and_compute(job);
      break;
    case Kind::late_input:
      job.trigger(job.plan.kind);
      job.companion.slow_read(job.options.pause_seconds);
      break;
    case Kind::late_file:
      job.trigger(job.plan.kind);
      look_for_file(job.options.pause_seconds);
      break;
    case Kind::late_callback:
      job.trigger(job.plan.kind);
      duplicate_with_attribute(job);
      break;
    case Kind::polled_deadline:
    case Kind::helper_thread:
      job.trigger(job.plan.kind);
      exchange_late(job, job.plan.kind == Kind::helper_thread);
      break;
    case Kind::handled_error:
      fail_in_collectives(job);
      if (job.trigger(job.plan.kind)) fail_and_go_on();
      break;
    case Kind::waiting_master:
    case Kind::imbalance: job.trigger(job.plan.kind); break;
    default: break;
  }
}

void checkpoint(Job& job) {
  const bool all = job.plan.kind == Kind::checkpoint;
  if (!all && job.plan.kind != Kind::checkpoint_one) return;
  if ((job.step + 1) % job.options.checkpoint_every != 0) return;
  if (job.rank == 0) job.log.write(job.plan, job.rank, job.step, job.phase);
  if (all || job.rank == 0) job.companion.slow_write(job.options.checkpoint_seconds);
  MPI_Barrier(job.first);
}

void share_one_core(Job& job) {
  if (job.plan.kind != Kind::oversubscription) return;
  if (job.rank == job.plan.rank) job.log.write(job.plan, job.rank, 0, job.options.phases.front());
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  int first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &allowed)) ++first;
  CPU_ZERO(&allowed);
  CPU_SET(first, &allowed);
  sched_setaffinity(0, sizeof allowed, &allowed);
}

Listener::Listener(Job& job) : job_(job) {
  if (job.plan.kind != Kind::listener_thread) return;
  if (job.rank == job.plan.rank) job.log.write(job.plan, job.rank, 0, job.options.phases.front());
  thread_ =
      std::thread([&job] { MPI_Recv(nullptr, 0, MPI_BYTE, job.rank, listener_tag, job.farm, MPI_STATUS_IGNORE); });
}

Listener::~Listener() {
  if (!thread_.joinable()) return;
  MPI_Send(nullptr, 0, MPI_BYTE, job_.rank, listener_tag, job_.farm);
  thread_.join();
}

}  // namespace fault_lab
