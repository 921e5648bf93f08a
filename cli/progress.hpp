// SPDX-License-Identifier: Apache-2.0
#pragma once
// A progress bar on a terminal; a line now and then where stderr is a file.
#include <chrono>
#include <string>

namespace bestride {

class Progress {
 public:
  /// `what`: "calibrating". Writes to stderr.
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  /// `done` of `total`, and what is at work. Redraws at most ten times a second; as lines, at every tenth of the whole.
  void show(int done, int total, const std::string& at);
  /// Takes the bar away, so that other lines can be written.
  void clear();

 private:
  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  int tenths_ = 0;
  std::chrono::steady_clock::time_point start_, last_{};
};

}  // namespace bestride
