// SPDX-License-Identifier: Apache-2.0
#include "cli/agent/lone_watch.hpp"

#include <cstdio>

#include "base/replace_file.hpp"
#include "cli/watch/finding_text.hpp"
#include "cli/watch/verdict_file.hpp"
#include "telemetry/record/job_folder.hpp"
#include "telemetry/record/watcher.hpp"

namespace bestride::inline cli {
namespace {

constexpr double lone_period = 1, lone_suspecting_period = 0.25;  ///< seconds
/// In the first seconds: the order of ends is known only of ranks that were known before.
constexpr double lone_starting = 2, lone_starting_period = 0.1;

double system_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

LoneWatch::LoneWatch(const std::string& job, const std::string& folder) : job_(job, system_seconds()) {
  job_.add_local(records_folder(), job);
  path_ = folder + "/bestride-" + job + "." + own_host() + ".verdict.json";
}

double LoneWatch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
}

void LoneWatch::look(bool ended) {
  if (!ended && seconds() < next_look_) return;
  observe(JobPhase::running);
  next_look_ = seconds() + (seconds() < lone_starting ? lone_starting_period
                            : job_.suspects()         ? lone_suspecting_period
                                                      : lone_period);
}

void LoneWatch::finish() {
  // Twice, because a finding is confirmed by the next observation.
  observe(JobPhase::running);
  observe(JobPhase::over);
}

void LoneWatch::observe(JobPhase phase) {
  job_.local()->note_ends(seconds());
  const WatchedJob::Changes changes = job_.observe(seconds(), [phase] { return phase; });
  if (changes.requested != 0) std::fprintf(stderr, "bestride: %s\n", requested_text(changes.requested).c_str());
  for (const std::size_t i : changes.begun) {
    const Finding& finding = job_.reported()[i].finding;
    const bool stacks = wants_stacks(finding, job_.view());
    if (stacks) {
      JobStacks taken = merge_host_stacks({take_host_stacks(ranks_with_stacks(finding, job_.ranks()), false)});
      if (job_.withdraw(i, taken)) return;
      stacks_ = std::move(taken);
    }
    const std::string text =
        finding_text(finding, job_.view(), stacks ? &*stacks_ : nullptr, seconds() - finding.since, false);
    std::fprintf(stderr, "%s  file: %s\n", text.c_str(), path_.c_str());
  }
  if (changes.begun.empty() && changes.ended.empty()) return;
  if (const auto written = replace_file(path_, verdict_json(job_, seconds(), -1, stacks_ ? &*stacks_ : nullptr));
      !written)
    std::fprintf(stderr, "bestride: %s\n", written.error().text.c_str());
}

}  // namespace bestride::inline cli
