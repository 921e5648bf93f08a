// SPDX-License-Identifier: Apache-2.0
#include "cli/job/local_ranks.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {

LocalRanks::LocalRanks(std::string folder, std::string name)
    : folder_(std::move(folder)), name_(std::move(name)), ends_(epoll_create1(EPOLL_CLOEXEC)) {}

LocalRanks::~LocalRanks() {
  for (const auto& [pid, process] : processes_)
    for (const int descriptor : {process.descriptor, process.record})
      if (descriptor >= 0) close(descriptor);
  if (ends_ >= 0) close(ends_);
}

void LocalRanks::await_end(int pid, Process& process) noexcept {
  process.descriptor = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = pid;
  if (process.descriptor >= 0) epoll_ctl(ends_, EPOLL_CTL_ADD, process.descriptor, &event);
}

JobSnapshot LocalRanks::read(std::size_t finished_calls) {
  JobSnapshot now = read_job(folder_, name_, {finished_calls});
  // A rank may have ended since. Its launcher waits for it soon, and then its status is lost.
  ended_in_read_ = take_ends() || ended_in_read_;
  for (RankSnapshot& rank : now.ranks) {
    Process& process = processes_[rank.pid];
    if (rank.visible && process.descriptor < 0) await_end(rank.pid, process);
    if (rank.alive && process.record < 0) process.record = open(rank.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    // Known from the time when its parent has waited for it.
    if (process.ended != 0 && process.wait_status < 0) process.wait_status = wait_status_of_ended(process.descriptor);
    if (process.wait_status >= 0) rank.wait_status = process.wait_status;  // else what the record says
    rank.ended = process.ended;
  }
  return now;
}

bool LocalRanks::note_ends(double seconds) {
  now_ = std::max(now_, seconds);
  const bool before = std::exchange(ended_in_read_, false);
  return take_ends() || before;
}

bool LocalRanks::take_ends() {
  bool some = false;
  epoll_event events[64];
  for (int count; (count = epoll_wait(ends_, events, std::size(events), 0)) > 0;)
    for (int i = 0; i < count; ++i) {
      Process& process = processes_.at(events[i].data.fd);
      epoll_ctl(ends_, EPOLL_CTL_DEL, process.descriptor, nullptr);
      process.ended = now_;
      now_ += 1e-6;  // only their order is known
      process.wait_status = wait_status_of_zombie(events[i].data.fd);
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
