// SPDX-License-Identifier: Apache-2.0
#pragma once
// A progress bar on a terminal; occasional lines if stderr is a file.
#include <chrono>
#include <string>

namespace bestride::inline cli {

class Progress {
 public:
  /// `what`: for example "calibrating". Writes to stderr.
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  /// Shows `done` of `total` and the current item. Redraws at most ten times per second; in line mode, prints at every
  /// fifth of the total.
  void show(int done, int total, const std::string& at);
  /// Shows that the work has ended, also if less than `total` was done.
  void finish();
  /// Removes the bar, so that other lines can be written.
  void clear();

 private:
  void draw(double part, const std::string& at);

  std::string what_;
  bool terminal_;
  bool drawn_ = false;
  int fifths_ = 0;
  std::chrono::steady_clock::time_point start_, last_{};
};

/// One line of at most `width` characters: what, bar, percent, seconds, and as much of `at` as fits. The bar is left
/// out if it would have fewer than 5 characters.
std::string progress_line(const std::string& what, double part, double seconds, const std::string& at,
                          std::size_t width);

}  // namespace bestride::inline cli
