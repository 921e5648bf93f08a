// SPDX-License-Identifier: Apache-2.0
// Preloaded by clock_test.py: in the program CLOCK_JUMP_IN, the system's clock is CLOCK_JUMP_BY seconds ahead from
// CLOCK_JUMP_AFTER seconds after the start on, as if somebody had set it.
#include <errno.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace {

double number(const char* name) {
  const char* const text = getenv(name);
  return text ? std::atof(text) : 0;
}

time_t jump() {
  static const char* const program = getenv("CLOCK_JUMP_IN");
  static const double after = number("CLOCK_JUMP_AFTER"), by = number("CLOCK_JUMP_BY");
  if (!program || std::strcmp(program, program_invocation_short_name) != 0) return 0;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  static const timespec begin = now;
  return double(now.tv_sec - begin.tv_sec) >= after ? time_t(by) : 0;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  const int result = int(syscall(SYS_clock_gettime, clock, now));
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += jump();
  return result;
}

int gettimeofday(timeval* now, void*) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec, now->tv_usec = exact.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* now) noexcept {
  timespec exact{};
  clock_gettime(CLOCK_REALTIME, &exact);
  if (now) *now = exact.tv_sec;
  return exact.tv_sec;
}
}
