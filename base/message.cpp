// SPDX-License-Identifier: Apache-2.0
#include "base/message.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/fnv1a.hpp"
#include "base/launcher_rank.hpp"
#include "base/not_cancelled.hpp"

namespace bestride {
namespace {

constexpr int line_limit = 16;
std::atomic<std::uint64_t> logged_keys[64];
std::atomic<int> lines_written{0};

enum class Level { quiet, warn, info };

Level level() noexcept {
  // Read directly from the environment, because a message may be written before the settings are read, or be about
  // them.
  const char* text = std::getenv("BESTRIDE_LOG");
  if (text && std::strcmp(text, "quiet") == 0) return Level::quiet;
  if (text && std::strcmp(text, "info") == 0) return Level::info;
  return Level::warn;
}

std::uint64_t hash(const char* text) noexcept {
  const std::uint64_t h = fnv1a(text);
  return h ? h : 1;
}

/// True for the first caller with this key. False for later callers, and if the table is full.
bool first_time(const char* key) noexcept {
  const std::uint64_t wanted = hash(key);
  for (auto& slot : logged_keys) {
    std::uint64_t seen = slot.load(std::memory_order_relaxed);
    if (seen == 0 && slot.compare_exchange_strong(seen, wanted)) return true;
    if (seen == wanted) return false;
  }
  return false;
}

void write_line(const char* format, va_list arguments) noexcept {
  const NotCancelled not_cancelled;
  const int line = lines_written.fetch_add(1, std::memory_order_relaxed);
  if (line > line_limit) return;
  char text[1024];
  int length = std::snprintf(text, sizeof text, "bestride: ");
  if (line == line_limit)
    length +=
        std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length), "further messages are dropped");
  else
    length += std::vsnprintf(text + length, sizeof text - static_cast<std::size_t>(length) - 1, format, arguments);
  if (length > static_cast<int>(sizeof text) - 2) length = static_cast<int>(sizeof text) - 2;
  text[length++] = '\n';
  [[maybe_unused]] const ssize_t written = ::write(2, text, static_cast<std::size_t>(length));
}

}  // namespace

void warn_once(const char* once_key, const char* format, ...) noexcept {
  if (level() == Level::quiet || !first_time(once_key)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void warn_once_per_job(const char* once_key, const char* format, ...) noexcept {
  if (level() == Level::quiet || (level() == Level::warn && launcher_rank() > 0) || !first_time(once_key)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

void log_info_once(const char* once_key, const char* format, ...) noexcept {
  if (level() != Level::info || !first_time(once_key)) return;
  va_list arguments;
  va_start(arguments, format);
  write_line(format, arguments);
  va_end(arguments);
}

}  // namespace bestride
