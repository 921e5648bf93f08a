// SPDX-License-Identifier: Apache-2.0
#include "event_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <stdexcept>

#include "apps/common/text.hpp"

namespace fault_lab {

EventLog::EventLog(const std::string& path) {
  if (path.empty()) return;
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) throw std::runtime_error("can't open " + path);
}

void EventLog::write(const Plan& plan, int rank, int step, Phase phase) const {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  const KindEntry& entry = entry_of(plan.kind);
  const std::string line = apps::format("%s: %s rank %d step %d phase %s time %lld.%06ld\n",
                                        entry.verdict == Class::clean ? "clean" : "fault", entry.name, rank, step,
                                        name_of(phase), static_cast<long long>(time.tv_sec), time.tv_nsec / 1000);
  const ssize_t written = ::write(file_, line.data(), line.size());
  static_cast<void>(written);  // there is no other place to report that
}

}  // namespace fault_lab
