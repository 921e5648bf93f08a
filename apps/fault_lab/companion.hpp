// SPDX-License-Identifier: Apache-2.0
#pragma once
// A child process of each rank. It ends the rank if the rank outlives its limit, also if the rank is stopped, and does
// what the rank can't do itself: continue it after SIGSTOP, trace it, read slowly what it writes, keep its core busy.
// It is forked before MPI_Init, because a fork afterwards is not safe with every network, and it makes no MPI call. It
// dies with the rank (PR_SET_PDEATHSIG).

namespace fault_lab {

class Companion {
 public:
  /// Forks. Must be called by the main thread before MPI_Init. After `limit` seconds the companion sends SIGKILL to the
  /// calling process. Throws std::runtime_error if there are no resources.
  explicit Companion(double limit);
  ~Companion();
  Companion(const Companion&) = delete;
  Companion& operator=(const Companion&) = delete;

  /// Sends SIGCONT after `seconds`. Returns at once.
  void continue_after(double seconds);
  /// Stops the calling process through ptrace for `seconds`. False if the system does not permit that.
  bool trace(double seconds);
  /// Calls write() once; it takes `seconds`.
  void slow_write(double seconds);
  /// Waits for the companion to end, which it does not.
  void wait_for_end() const;
  /// Waits until the companion has computed for `seconds`.
  void compute(double seconds);
  /// Reads a pipe for `seconds`, into which the companion writes a byte twice a second.
  void slow_read(double seconds);
  /// Starts a process that keeps one CPU busy until this process ends.
  void keep_busy(int cpu);
  /// Limits this process to `percent` of one CPU with a control group. False if none can be made here.
  bool limit_cpu(int percent);

 private:
  struct Command;
  [[noreturn]] static void serve(int commands, int replies, int sink, int rank, double limit);
  void send(const Command&);
  bool reply();

  int commands_ = -1, replies_ = -1, sink_ = -1;
  int process_ = -1;
};

}  // namespace fault_lab
