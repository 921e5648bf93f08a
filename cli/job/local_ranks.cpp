// SPDX-License-Identifier: Apache-2.0
#include "cli/job/local_ranks.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "telemetry/record/forbidden_call.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

constexpr int most_readings = 4;       ///< of the records, if ranks end meanwhile
constexpr double lock_patience = 0.1;  ///< seconds from the close of a record to the release of its lock
constexpr int status_patience = 100;   ///< milliseconds from the close of a record to the end of the process

}  // namespace

LocalRanks::LocalRanks(std::string folder, std::string name)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      ends_(epoll_create1(EPOLL_CLOEXEC)),
      closes_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = closes_event;
  if (closes_ >= 0) epoll_ctl(ends_, EPOLL_CTL_ADD, closes_, &event);
}

LocalRanks::~LocalRanks() {
  for (const auto& [pid, process] : processes_)
    for (const int descriptor : {process.descriptor, process.record})
      if (descriptor >= 0) close(descriptor);
  for (const int descriptor : {closes_, ends_})
    if (descriptor >= 0) close(descriptor);
}

int LocalRanks::key_of(const RankSnapshot& rank) {
  if (rank.pid_namespace != 0 && rank.pid_namespace == own_pid_namespace()) return rank.pid;
  return elsewhere_.emplace(rank.path, -2 - static_cast<int>(elsewhere_.size())).first->second;
}

void LocalRanks::await_end(int key, const RankSnapshot& rank, Process& process) {
  process.awaited = true;
  if (closes_ >= 0) {
    const int watch = inotify_add_watch(closes_, rank.path.c_str(), IN_CLOSE_WRITE | IN_DONT_FOLLOW);
    if (watch >= 0) watches_[watch] = key;
  }
  static const bool deadly = call_is_deadly(SYS_pidfd_open);
  if (!rank.visible || deadly) return;
  process.descriptor = static_cast<int>(syscall(SYS_pidfd_open, rank.pid, 0));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = key;
  if (process.descriptor >= 0) epoll_ctl(ends_, EPOLL_CTL_ADD, process.descriptor, &event);
}

JobSnapshot LocalRanks::read(std::size_t finished_calls) {
  JobSnapshot now;
  double begin = 0;
  bool changed = true;
  for (int reading = 0; changed && reading < most_readings; ++reading) {
    take_closes();
    await_status();
    begin = now_;
    now = read_job(folder_, name_, {finished_calls});
    // A rank may have ended since. Its launcher reaps it soon, and then its status is lost.
    ended_in_read_ = take_ends() || ended_in_read_;
    // A rank that closed its record meanwhile may have ended before one that was found to be gone, and its snapshot may
    // be from before its MPI_Finalize.
    changed = std::any_of(processes_.begin(), processes_.end(), [begin](const auto& entry) {
      return entry.second.closed != 0 && entry.second.closed >= begin;
    });
  }
  for (RankSnapshot& rank : now.ranks) {
    const int key = key_of(rank);
    Process& process = processes_[key];
    if (rank.alive && !process.awaited) await_end(key, rank, process);
    // It still holds its lock, which the kernel releases just after it has reported the close.
    if (rank.alive && !rank.visible && begin - process.closed > lock_patience) process.closed = 0;
    if (rank.visible && process.closed != 0 && process.closed < begin) note_closed(rank, process);
    if (rank.alive && process.record < 0) process.record = open(rank.path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    // Known once its parent has reaped it.
    if (process.ended != 0 && process.wait_status < 0) process.wait_status = wait_status_of_ended(process.descriptor);
    if (process.wait_status >= 0) rank.wait_status = process.wait_status;  // else what the record says
    if (rank.alive) continue;
    rank.ended_in_order = process.closed != 0;
    rank.ended = rank.ended_in_order ? process.closed : process.ended;
  }
  return now;
}

void LocalRanks::note_closed(RankSnapshot& rank, Process& process) noexcept {
  if (is_ending(rank.pid))
    rank.alive = rank.visible = false;
  else
    process.closed = 0;  // it has become another program by exec()
}

bool LocalRanks::note_ends(double seconds) {
  now_ = std::max(now_, seconds);
  const bool before = std::exchange(ended_in_read_, false);
  return take_ends() || before;
}

bool LocalRanks::take_ends() {
  bool some = false;
  epoll_event events[64];
  for (int count; (count = epoll_wait(ends_, events, std::size(events), 0)) > 0;) {
    some = take_closes() || some;  // they precede these ends
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == closes_event) continue;
      Process& process = processes_.at(events[i].data.fd);
      epoll_ctl(ends_, EPOLL_CTL_DEL, process.descriptor, nullptr);
      process.ended = now_;
      now_ += 1e-6;  // only their order is known
      process.wait_status = wait_status_of_zombie(events[i].data.fd);
      some = true;
    }
  }
  return some;
}

bool LocalRanks::take_closes() {
  bool some = false;
  alignas(inotify_event) char events[4096];
  for (ssize_t length; closes_ >= 0 && (length = ::read(closes_, events, sizeof events)) > 0;)
    for (ssize_t at = 0; at < length;) {
      inotify_event event;
      std::memcpy(&event, events + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event + event.len);
      const auto watch = watches_.find(event.wd);
      if (watch == watches_.end()) continue;
      if (Process& process = processes_.at(watch->second); (event.mask & IN_CLOSE_WRITE) != 0 && process.closed == 0) {
        process.closed = now_;
        now_ += 1e-6;
        some = true;
      }
      if ((event.mask & IN_IGNORED) != 0) watches_.erase(watch);  // the file is gone
    }
  return some;
}

void LocalRanks::await_status() {
  const Process* first = nullptr;
  for (const auto& [pid, process] : processes_)
    if (process.closed != 0 && process.ended == 0 && (!first || process.closed < first->closed)) first = &process;
  if (!first || first->descriptor < 0) return;
  pollfd end{first->descriptor, POLLIN, 0};
  if (poll(&end, 1, status_patience) > 0) ended_in_read_ = take_ends() || ended_in_read_;
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
