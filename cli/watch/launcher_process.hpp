// SPDX-License-Identifier: Apache-2.0
#pragma once
// LauncherProcess: the launcher of a job as a child process, whose signals and exit code are passed on.
#include <sys/wait.h>

#include <string>
#include <vector>

namespace bestride::inline cli {

/// One in a process. Signals that would end this process are passed on to the launcher instead.
class LauncherProcess {
 public:
  /// Starts `path` with the words of `command`. Ends the command with a message if that is not possible.
  LauncherProcess(const std::string& path, const std::vector<std::string>& command);
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;

  int pid() const noexcept { return pid_; }
  /// Readable when a signal has arrived: handle_signals() has to be called.
  int signals() const noexcept { return signals_; }
  void handle_signals();
  /// The kernel closes the descriptors of a process, from which its ranks may learn that it is gone, before its end can
  /// be waited for. If the launcher is on that way, this waits for its end, at most 1 s in all calls.
  void await_end();
  bool ended() const noexcept { return ended_; }
  /// The signal that ended it; 0: none.
  int killed_by() const noexcept { return ended_ && WIFSIGNALED(status_) ? WTERMSIG(status_) : 0; }
  /// What a shell reports: the exit code, or 128 + the signal.
  int exit_code() const noexcept;
  /// The user or the batch system asked the job to end.
  bool interrupted() const noexcept { return interrupted_; }
  /// Sends the launcher a signal.
  void send(int signal) const noexcept;

 private:
  int pid_ = 0, signals_ = -1, status_ = 0;
  int patience_ = 1000;  ///< ms
  bool ended_ = false, interrupted_ = false;
};

}  // namespace bestride::inline cli
