// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/verdict_file.hpp"

#include <sys/resource.h>

#include <algorithm>

#include "cli/job/job_json.hpp"
#include "cli/job/rank_line.hpp"
#include "cli/watch/advice.hpp"
#include "cli/watch/finding_facts.hpp"
#include "cli/watch/finding_text.hpp"
#include "cli/watch/summary.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

/// Finished calls of each thread in the file.
constexpr std::size_t calls_written = 16;

void write_slow_path(JsonWriter& json, const SlowPath& path) {
  json.key("path").open_object().member("kind", name(path.kind));
  const bool link = is_link(path.kind);
  if (path.between_hosts) {
    json.member(link ? "from_host" : "host", path.host);
    if (link) json.member("to_host", path.other_host);
  } else {
    json.member(link ? "from_rank" : "rank", path.rank);
    if (link) json.member("to_rank", path.other_rank);
  }
  json.member("messages", path.messages).member("bytes", path.bytes);
  json.member("seconds", path.seconds).member("median_seconds", path.typical).member("exact", path.exact);
  json.close_object();
}

void write_finding(JsonWriter& json, const Reported& reported, const JobView& view, CallSites& sites,
                   const JobStacks* stacks) {
  const Finding& finding = reported.finding;
  json.open_object().member("class", name(finding.fault)).member("cause", name(finding.cause));
  json.member("text", headline(finding, view, stacks)).member("advice", advice(finding, view));
  json.member("summary", summary(finding, view, sites, stacks));
  json.key("next").open_array();
  for (const NextStep& step : next_steps(finding, view))
    json.open_object()
        .member("check", step.check)
        .member("command", step.command)
        .member("expected", step.expected)
        .member("otherwise", step.otherwise)
        .close_object();
  json.close_array();
  write_ranks(json, "culprits", finding.culprits);
  write_ranks(json, "held_up", finding.held_up);
  if (finding.whole_job) json.member("whole_job", true);
  json.member("since", finding.since).member("found", reported.found);
  if (reported.ended > 0) json.member("ended", reported.ended);
  json.member("confidence", finding.confidence);
  json.key("evidence").open_array();
  for (const std::string& fact : evidence(finding, view)) json.value(fact);
  json.close_array();
  if (finding.factor > 0) json.member("factor", finding.factor);
  if (finding.path) write_slow_path(json, *finding.path);
  if (finding.cpu_share >= 0) json.member("cpu_share", finding.cpu_share);
  if (!finding.cycle.empty()) write_ranks(json, "cycle", finding.cycle);
  if (finding.tags)
    json.key("tags")
        .open_object()
        .member("from", finding.tags->from)
        .member("to", finding.tags->to)
        .member("sent", finding.tags->sent)
        .member("wanted", finding.tags->wanted)
        .member("other_communicator", finding.tags->other_communicator)
        .member("left_out", finding.tags->left_out)
        .member("by_receiver", finding.tags->by_receiver)
        .close_object();
  if (finding.wrong_peer)
    json.key("wrong_peer")
        .open_object()
        .member("from", finding.wrong_peer->from)
        .member("to", finding.wrong_peer->to)
        .member("named", finding.wrong_peer->named)
        .member("by", finding.wrong_peer->by_receiver ? finding.wrong_peer->to : finding.wrong_peer->from)
        .member("tag", finding.wrong_peer->tag)
        .close_object();
  if (finding.epoch)
    json.key("epoch")
        .open_object()
        .member("waiter", finding.epoch->waiter)
        .member("function", function_name(finding.epoch->waits_in))
        .member("other", finding.epoch->other)
        .member("missing", finding.epoch->missing)
        .member("group", finding.epoch->group)
        .member("window", communicator_text(view, finding.epoch->window))
        .close_object();
  if (finding.omitted) {
    json.key("omitted")
        .open_object()
        .member("rank", finding.omitted->by)
        .member("function", function_name(finding.omitted->function))
        .member("ordinal", finding.omitted->ordinal)
        .member("communicator", communicator_text(view, finding.omitted->communicator));
    if (finding.omitted->witness >= 0)
      json.member("witness", finding.omitted->witness);
    else
      json.member("receives", finding.omitted->receives)
          .member("since", finding.omitted->since)
          .member("usual", finding.omitted->usual);
    json.close_object();
  }
  if (const int status = wait_status(finding, view); status >= 0) json.member("wait_status", status);
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
  for (const RankSnapshot& rank : job.ranks()) {
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
  CallSites sites;
  for (const Reported& reported : job.reported()) write_finding(json, reported, job.view(), sites, stacks);
  json.close_array().key("job");
  write_job(json, job.view(), calls_written, stacks);
  json.close_object();
  return json.text();
}

}  // namespace bestride::inline cli
