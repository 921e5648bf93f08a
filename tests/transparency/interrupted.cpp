// SPDX-License-Identifier: Apache-2.0
// Signals and cancellation. A signal handler of the application interrupts every call, including MPI_Init, so that
// system calls return early. A cancelled thread ends at one of the application's cancellation points, not in an MPI
// call. Four ranks.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "tests/transparency/records.hpp"
#include "tests/transparency/watchdog.hpp"

using namespace bestride::test;

namespace {

std::atomic<long> signals{0};

/// Sends SIGPROF as a profiler does. Without SA_RESTART, system calls return EINTR.
void send_signals(long microseconds) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ++signals; };
  sigaction(SIGPROF, &action, nullptr);
  const itimerval often{{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_PROF, &often, nullptr);
  // That timer stands still while a call waits in the kernel; this one does not.
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGPROF;
  timer_t timer;
  const itimerspec as_often{{0, microseconds * 1000}, {0, microseconds * 1000}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 || timer_settime(timer, 0, &as_often, nullptr) != 0) {
    std::perror("timer");  // CHECK needs MPI_Init
    std::exit(1);
  }
}

/// Messages on `comm`, and collectives of all ranks. No other thread uses `tag`.
void communicate(MPI_Comm comm, int tag) {
  const int rank = world_rank(), size = world_size(), next = (rank + 1) % size, previous = (rank + size - 1) % size;
  MPI_Datatype type = make_record_type();
  for (const int count : {16, 5000, 100000}) {
    const std::vector<Record> out = records(count, rank);
    std::vector<Record> in(out.size());
    MPI_Sendrecv(out.data(), count, type, next, tag, in.data(), count, type, previous, tag, comm, MPI_STATUS_IGNORE);
    CHECK_EQUAL(0, wrong_records(in.data(), count, previous));
  }
  std::vector<int> mine(300000, rank), all(mine.size() * static_cast<std::size_t>(size)), sum(mine.size());
  const int count = static_cast<int>(mine.size());
  MPI_Request request;
  MPI_Iallgather(mine.data(), count, MPI_INT, all.data(), count, MPI_INT, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int r = 0; r < size; ++r) CHECK_EQUAL(r, all[static_cast<std::size_t>(r) * mine.size()]);
  MPI_Allreduce(mine.data(), sum.data(), count, MPI_INT, MPI_SUM, comm);
  CHECK_EQUAL(size * (size - 1) / 2, sum.back());
  MPI_Type_free(&type);
}

}  // namespace

MPI_CASE(signals_during_calls) {
  for (int round = 0; round < 5; ++round) {
    watch_for_hang();
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    communicate(comm, 1);
    MPI_Comm_free(&comm);
  }
  CHECK(signals > 0);
}

MPI_CASE(cancelled_thread) {
  // A thread that is cancelled before its first MPI call still makes all of its calls.
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  struct Shared {
    MPI_Comm comm;
    std::atomic<bool> cancelled{false};
    std::atomic<bool> made_all_calls{false};
  } shared;
  shared.comm = comm;
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void* of) -> void* {
        auto* known = static_cast<Shared*>(of);
        while (!known->cancelled) {
        }
        communicate(known->comm, 2);
        known->made_all_calls = true;
        pthread_testcancel();
        return nullptr;
      },
      &shared);
  pthread_cancel(thread);
  shared.cancelled = true;
  void* result = nullptr;
  pthread_join(thread, &result);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(shared.made_all_calls.load());
  communicate(comm, 3);
  MPI_Comm_free(&comm);
}

int main(int argc, char** argv) {
  send_signals(1000);
  return run_watched_cases(argc, argv, MPI_THREAD_MULTIPLE);
}
