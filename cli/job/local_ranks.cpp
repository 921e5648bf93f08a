// SPDX-License-Identifier: Apache-2.0
#include "cli/job/local_ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

LocalRanks::~LocalRanks() {
  for (const auto& [pid, process] : processes_)
    for (const int descriptor : {process.descriptor, process.record})
      if (descriptor >= 0) close(descriptor);
}

JobSnapshot LocalRanks::read(std::size_t finished_calls) {
  JobSnapshot now = read_job(folder_, name_, {finished_calls});
  for (RankSnapshot& rank : now.ranks) {
    Process& process = processes_[rank.pid];
    if (rank.visible && process.descriptor < 0)
      process.descriptor = static_cast<int>(syscall(SYS_pidfd_open, rank.pid, 0));
    if (rank.alive && process.record < 0) process.record = open(rank.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    rank.wait_status = process.wait_status;
    rank.ended = process.ended;
  }
  return now;
}

std::vector<int> LocalRanks::process_descriptors() const {
  std::vector<int> descriptors;
  for (const auto& [pid, process] : processes_)
    if (process.descriptor >= 0 && process.ended == 0) descriptors.push_back(process.descriptor);
  return descriptors;
}

bool LocalRanks::note_ends(double seconds) {
  bool some = false;
  for (auto& [pid, process] : processes_) {
    if (process.ended != 0 || process.descriptor < 0 || !is_readable(process.descriptor)) continue;
    process.ended = seconds;
    process.wait_status = wait_status_of_zombie(pid);
    some = true;
  }
  return some;
}

bool LocalRanks::suspects(double seconds) {
  bool some = false;
  for (auto& [pid, process] : processes_) {
    if (process.record < 0 || process.ended != 0) continue;
    const auto count = read_call_count(process.record);
    if (!count || count->state != ProcessState::initialized || count->calls != process.calls) {
      process.calls = count ? count->calls : 0;
      process.progressed = seconds;
    }
    some = some || seconds - process.progressed >= 0.5;
  }
  return some;
}

void LocalRanks::kill_all() const {
  for (const auto& [pid, process] : processes_)
    if (process.descriptor >= 0 && process.ended == 0)
      syscall(SYS_pidfd_send_signal, process.descriptor, SIGKILL, nullptr, 0);
}

void LocalRanks::remove_records(const std::vector<RankSnapshot>& ranks) const {
  for (const RankSnapshot& rank : ranks)
    if (!rank.alive && !rank.remote) remove_record(rank.path);
}

}  // namespace bestride::inline cli
