// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "faults.hpp"

namespace fault_lab {
namespace {

std::atomic<bool> frozen{false}, released{false};

/// Freezes the thread that gets the signal, wherever it is.
void freeze(int) {
  frozen = true;
  while (!released) usleep(100);
  frozen = false;
}

void probe(MPI_Comm comm) {
  int found = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, comm, &found, MPI_STATUS_IGNORE);
}

}  // namespace

void hold_progress(Job& job) {
  if (!job.trigger(Kind::thread_holds_progress)) return;
  struct sigaction action {};
  action.sa_handler = freeze;
  sigaction(SIGUSR2, &action, nullptr);
  std::thread poller([comm = job.farm] {
    for (;;) probe(comm);
  });
  // A thread that polls MPI holds the library's lock most of the time. If it was frozen without the lock, this thread's
  // call returns, and the next attempt follows.
  for (unsigned attempt = 1;; ++attempt) {
    released = false;
    pthread_kill(poller.native_handle(), SIGUSR2);
    while (!frozen) usleep(100);
    probe(job.farm);
    released = true;
    while (frozen) usleep(100);
    usleep(attempt % 97);  // so that the attempts do not keep in step with the poller
  }
}

}  // namespace fault_lab
