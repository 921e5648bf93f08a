// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bestride {

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(2)), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::show(int done, int total, const std::string& at) {
  if (total <= 0) return;
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - start_).count();
  if (!terminal_) {
    if (done * 10 / total <= tenths_) return;
    tenths_ = done * 10 / total;
    std::fprintf(stderr, "bestride: %s, %d of %d points, %.0f s\n", what_.c_str(), done, total, seconds);
    return;
  }
  if (now - last_ < std::chrono::milliseconds(100) && done < total) return;
  last_ = now;
  constexpr int width = 30;
  const int filled = std::min(width, done * width / total);
  std::fprintf(stderr, "\r\033[K%s [%s%s] %d/%d  %.0f s  %s", what_.c_str(),
               std::string(static_cast<std::size_t>(filled), '#').c_str(),
               std::string(static_cast<std::size_t>(width - filled), '.').c_str(), done, total, seconds,
               at.substr(0, 40).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace bestride
