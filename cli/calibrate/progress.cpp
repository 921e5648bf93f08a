// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace bestride::inline cli {
namespace {

/// Columns of the terminal; 80 if it does not tell.
std::size_t columns() {
  winsize size{};
  return ::ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

std::string progress_line(const std::string& what, double part, double seconds, const std::string& at,
                          std::size_t width) {
  constexpr std::size_t longest_bar = 30, shortest_bar = 5;
  char figures[64];
  std::snprintf(figures, sizeof figures, " %3.0f %%  %.0f s", 100 * part, seconds);
  std::string end = figures;
  const std::size_t brackets = 3;  // " [" and "]"
  const std::size_t room =
      width > what.size() + end.size() + brackets ? width - what.size() - end.size() - brackets : 0;
  const std::size_t for_item = at.empty() ? 0 : std::min(at.size() + 2, room > shortest_bar ? room - shortest_bar : 0);
  const std::size_t bar = std::min(longest_bar, room - for_item);
  std::string line = what;
  if (bar >= shortest_bar) {
    const auto filled = std::min(bar, static_cast<std::size_t>(part * static_cast<double>(bar)));
    line += " [" + std::string(filled, '#') + std::string(bar - filled, '.') + "]";
  }
  line += end;
  if (for_item > 2) line += "  " + at.substr(0, for_item - 2);
  return line.substr(0, width);
}

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(::isatty(2)), start_(std::chrono::steady_clock::now()) {}

Progress::~Progress() { clear(); }

void Progress::draw(double part, const std::string& at) {
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (!terminal_) {
    std::fprintf(stderr, "bestride: %s, %.0f %%, %.0f s\n", what_.c_str(), 100 * part, seconds);
    return;
  }
  // One column is left free: a full line would move the cursor to the next one.
  std::fprintf(stderr, "\r\033[K%s", progress_line(what_, part, seconds, at, columns() - 1).c_str());
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::show(int done, int total, const std::string& at) {
  if (total <= 0 || done >= total) return;  // finish() draws the end
  if (!terminal_) {
    if (done * 5 / total <= fifths_) return;
    fifths_ = done * 5 / total;
  } else {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
  }
  draw(static_cast<double>(done) / total, at);
}

void Progress::finish() {
  draw(1, "");
  if (drawn_) std::fputc('\n', stderr);
  drawn_ = false;
}

void Progress::clear() {
  if (drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

}  // namespace bestride::inline cli
