// SPDX-License-Identifier: Apache-2.0
#pragma once
// A progress bar on a terminal; occasional lines if stderr is a file.
#include <chrono>
#include <string>

namespace bestride {

class Progress {
 public:
  /// `what`: for example "calibrating". Writes to stderr.
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  /// Shows `done` of `total` and the current item. Redraws at most ten times per second; in line mode, prints at every
  /// tenth of the total.
  void show(int done, int total, const std::string& at);
  /// Removes the bar, so that other lines can be written.
  void clear();

 private:
  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  int tenths_ = 0;
  std::chrono::steady_clock::time_point start_, last_{};
};

}  // namespace bestride
