// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/watched_job.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/process_state.hpp"

namespace bestride::inline cli {
namespace {

/// Finished calls of each thread that are read, all that there are: mismatches and tags are found in them.
constexpr std::size_t calls_read = main_ring_size;

bool is_readable(int descriptor) {
  pollfd entry{descriptor, POLLIN, 0};
  return poll(&entry, 1, 0) > 0;
}

}  // namespace

WatchedJob::~WatchedJob() {
  for (const auto& [pid, process] : processes_)
    if (process.descriptor >= 0) close(process.descriptor);
}

WatchedJob::Changes WatchedJob::observe(double seconds) {
  JobSnapshot now = read_job(folder_, name_, {calls_read});
  if (now.ranks.empty()) now.ranks = std::move(view_.job.ranks), now.problems.clear();  // its records were removed
  for (RankSnapshot& rank : now.ranks) {
    Process& process = processes_[rank.pid];
    if (rank.visible && process.descriptor < 0)
      process.descriptor = static_cast<int>(syscall(SYS_pidfd_open, rank.pid, 0));
    rank.wait_status = process.wait_status;
    rank.ended = process.ended;
  }
  view_ = make_view(std::move(now), &view_.job);
  const std::vector<Finding> found = detector_.observe({seconds, view_.job.ranks});
  Changes changes;
  // A crash ends what was wrong before, but the job does not go on.
  const bool crashed =
      std::any_of(found.begin(), found.end(), [](const Finding& f) { return f.fault == Fault::crash; });
  for (std::size_t i = 0; i < reported_.size(); ++i)
    if (!crashed && reported_[i].ended == 0 && std::none_of(found.begin(), found.end(), [&](const Finding& finding) {
          return finding.same_as(reported_[i].finding);
        })) {
      reported_[i].ended = seconds;
      changes.ended.push_back(i);
    }
  for (const Finding& finding : found)
    if (std::none_of(reported_.begin(), reported_.end(),
                     [&](const Reported& known) { return known.ended == 0 && known.finding.same_as(finding); })) {
      changes.begun.push_back(reported_.size());
      reported_.push_back({finding, seconds, 0});
    }
  return changes;
}

std::vector<int> WatchedJob::process_descriptors() const {
  std::vector<int> descriptors;
  for (const auto& [pid, process] : processes_)
    if (process.descriptor >= 0 && process.ended == 0) descriptors.push_back(process.descriptor);
  return descriptors;
}

void WatchedJob::note_ends(double seconds) {
  for (auto& [pid, process] : processes_) {
    if (process.ended != 0 || process.descriptor < 0 || !is_readable(process.descriptor)) continue;
    process.ended = seconds;
    process.wait_status = wait_status_of_zombie(pid);
  }
}

void WatchedJob::remove_records() const {
  for (const RankSnapshot& rank : view_.job.ranks)
    if (!rank.alive) remove_record(rank.path);
}

}  // namespace bestride::inline cli
