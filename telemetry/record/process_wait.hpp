// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a process outside MPI waits for, together with its threads and its child processes, from /proc.
#include <cstdint>
#include <string>
#include <vector>

namespace bestride::inline telemetry {

struct ProcessWait {
  /// The system call of the thread that was asked for: "read of /tmp/input (FIFO)", "wait for process 4711 (sort)"; ""
  /// if it is in none or if that is not known.
  std::string call;
  /// The other process that holds the mutex, or the lock of the file, for which this thread waits without a limit of
  /// time; 0: none, or not known.
  int holder = 0;
  /// A thread of the holder besides its main one may release it.
  bool holder_may_release = false;
  /// A thread or a child process waits for what another program, a person or a device may send: a connection, a
  /// terminal, a GPU. False if all of them wait for a lock, a pipe, a file system, time or a child process.
  bool may_be_served = false;
  /// True if the process may go on: not all of its threads wait for locks or conditions of the process alone without a
  /// limit of time, or the handler of a signal may end the wait. Also true if that is not known.
  bool may_go_on = false;
  /// Changes whenever a process below this one begins, ends, computes, sleeps, reads or writes.
  std::uint64_t children = 0;

  bool operator==(const ProcessWait&) const = default;
};

/// A kernel function (ThreadSnapshot::channel) in which a thread waits for something on this host: a lock, a pipe, a
/// child process, a time. Other waits, and those whose function is not known, may end when a program far away, a person
/// or a device sends something.
bool waits_for_this_host(const std::string& channel);

/// Reads about five files for each thread and child process. `tid`: the thread to describe.
ProcessWait process_wait(int pid, int tid);

/// True if a thread of the process besides `known`, and besides those of the MPI library's transport, may go on by
/// itself, as ProcessWait::may_go_on says. Reads about five files for each thread.
bool other_threads_may_go_on(int pid, const std::vector<int>& known);

}  // namespace bestride::inline telemetry
