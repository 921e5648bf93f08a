// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/verdict_file.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/job/job_json.hpp"
#include "cli/watch/finding_text.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

/// Finished calls of each thread in the file.
constexpr std::size_t calls_written = 16;

void write_finding(JsonWriter& json, const Reported& reported, const JobView& view) {
  const Finding& finding = reported.finding;
  json.open_object().member("class", name(finding.fault)).member("cause", name(finding.cause));
  json.member("text", headline(finding, view)).member("advice", advice(finding, view));
  write_ranks(json, "culprits", finding.culprits);
  write_ranks(json, "held_up", finding.held_up);
  json.member("since", finding.since).member("found", reported.found);
  if (reported.ended > 0) json.member("ended", reported.ended);
  json.member("confidence", finding.confidence);
  json.key("evidence").open_array();
  for (const std::string& fact : evidence(finding, view)) json.value(fact);
  json.close_array();
  if (finding.factor > 0) json.member("factor", finding.factor);
  if (finding.cpu_share >= 0) json.member("cpu_share", finding.cpu_share);
  if (!finding.cycle.empty()) write_ranks(json, "cycle", finding.cycle);
  if (finding.tags)
    json.key("tags")
        .open_object()
        .member("from", finding.tags->from)
        .member("to", finding.tags->to)
        .member("sent", finding.tags->sent)
        .member("wanted", finding.tags->wanted)
        .close_object();
  for (const RankSnapshot& rank : view.job.ranks)
    if (finding.fault == Fault::crash && finding.culprits.size() == 1 && rank.world_rank == finding.culprits[0] &&
        rank.wait_status >= 0)
      json.member("wait_status", rank.wait_status);
  json.close_object();
}

}  // namespace

WatchCost watch_cost(const WatchedJob& job, double seconds) {
  WatchCost cost;
  rusage use{};
  if (getrusage(RUSAGE_SELF, &use) == 0 && seconds > 0)
    cost.watcher = (static_cast<double>(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                    1e-6 * static_cast<double>(use.ru_utime.tv_usec + use.ru_stime.tv_usec)) /
                   seconds;
  for (const RankSnapshot& rank : job.view().job.ranks) {
    double calls = 0;
    for (const ThreadSnapshot& thread : rank.threads) calls += static_cast<double>(thread.calls);
    // A call that is not timed costs less; the measured cost is that of a timed one.
    if (rank.read_at > rank.anchor_ticks)
      cost.recording = std::max(cost.recording,
                                calls * rank.ticks_per_record / static_cast<double>(rank.read_at - rank.anchor_ticks));
  }
  return cost;
}

std::string verdict_json(const WatchedJob& job, double seconds, int exit_code, const JobStacks* stacks) {
  JsonWriter json;
  json.open_object().member("format", "bestride-verdict").member("version", 1);
  json.member("started", job.started());
  if (exit_code >= 0) json.member("launcher_exit_code", exit_code);
  const WatchCost cost = watch_cost(job, seconds);
  json.key("overhead").open_object().member("watcher", cost.watcher).member("recording", cost.recording).close_object();
  json.key("findings").open_array();
  for (const Reported& reported : job.reported()) write_finding(json, reported, job.view());
  json.close_array().key("job");
  write_job(json, job.view(), calls_written, stacks);
  json.close_object();
  return json.text();
}

bool write_whole_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + "." + std::to_string(getpid());
  std::FILE* const file = std::fopen(temporary.c_str(), "we");
  if (!file) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) == 0 && written && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  std::remove(temporary.c_str());
  return false;
}

}  // namespace bestride::inline cli
