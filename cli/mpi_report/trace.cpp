// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_report/trace.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "cli/job/rank_line.hpp"
#include "telemetry/record/functions.hpp"
#include "telemetry/waits/members.hpp"
#include "telemetry/waits/messages.hpp"

namespace bestride::inline cli {
namespace {

using Json = nlohmann::json;

/// Thread slots of a rank in the numbers of the trace's threads.
constexpr int slots_per_rank = 32;

class Trace {
 public:
  Trace(const JobView& view, const MpiReport& report, CallSites& places)
      : places_(places), members_(view.job.ranks), calls_(timeline(view, main_ring_size)) {
    begin_ = std::numeric_limits<double>::infinity();
    for (const TimelineCall& call : calls_) begin_ = std::min(begin_, call.begin);
    if (calls_.empty()) begin_ = report.started;
    name_threads(view);
    for (const TimelineCall& call : calls_) add(call);
    add_flows();
    for (const MpiReport::Finding& finding : report.findings)
      events_.push_back({{"ph", "i"},
                         {"s", "g"},
                         {"name", finding.kind},
                         {"pid", 0},
                         {"tid", 0},
                         {"ts", microseconds(report.started + finding.found)},
                         {"args", {{"text", finding.text}}}});
  }
  std::string text() const {
    const Json all = {{"traceEvents", events_}, {"displayTimeUnit", "ms"}};
    return all.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  double microseconds(double time) const { return (time - begin_) * 1e6; }
  static int tid_of(const RankSnapshot& rank, unsigned slot) {
    return rank.world_rank * slots_per_rank + static_cast<int>(slot);
  }
  int pid_of(const RankSnapshot& rank) {
    return hosts_.try_emplace(rank.host, static_cast<int>(hosts_.size())).first->second;
  }

  void name_threads(const JobView& view) {
    for (const RankSnapshot& rank : view.job.ranks) {
      const bool is_new = !hosts_.count(rank.host);
      const int pid = pid_of(rank);
      if (is_new)
        events_.push_back({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", rank.host}}}});
      for (const ThreadSnapshot& thread : rank.threads) {
        const std::string name = "rank " + std::to_string(rank.world_rank) +
                                 (thread.slot ? " thread " + std::to_string(thread.slot) : std::string());
        const int tid = tid_of(rank, thread.slot);
        events_.push_back(
            {{"ph", "M"}, {"name", "thread_name"}, {"pid", pid}, {"tid", tid}, {"args", {{"name", name}}}});
        events_.push_back(
            {{"ph", "M"}, {"name", "thread_sort_index"}, {"pid", pid}, {"tid", tid}, {"args", {{"sort_index", tid}}}});
      }
    }
  }

  void add(const TimelineCall& call) {
    Json arguments = {{"call", call_text(*call.rank, *call.call)}, {"number", call.call->number}};
    if (const std::string place = places_.text(*call.rank, call.call->site); !place.empty()) arguments["at"] = place;
    if (call.call->left == 0) arguments["note"] = "did not return";
    events_.push_back({{"ph", "X"},
                       {"name", function_name(call.call->function)},
                       {"cat", call.call->ordinal ? "collective" : "mpi"},
                       {"pid", pid_of(*call.rank)},
                       {"tid", tid_of(*call.rank, call.thread->slot)},
                       {"ts", microseconds(call.begin)},
                       {"dur", (call.end - call.begin) * 1e6},
                       {"args", arguments}});
  }

  /// Communicator, sender, receiver, tag.
  using Channel = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::int32_t>;

  /// Messages of one channel don't overtake each other (MPI-4.1, 3.5), so counted from the last call of a rank that has
  /// finalized its n-th last send matches the n-th last receive, if all calls in between are remembered and timed.
  void add_flows() {
    std::map<Channel, std::vector<const TimelineCall*>> sends, receives;
    std::set<std::pair<std::uint64_t, std::int32_t>> any;  // receivers that took messages of unknown source or tag
    for (const TimelineCall& call : calls_) {
      const CommunicatorSnapshot* const communicator = call.rank->communicator(call.call->communicator);
      if (!communicator || communicator->uid == 0 || communicator->kind != CommunicatorKind::intra) continue;
      each_message(*call.call, [&](const Message& message) {
        const bool send = message.kind == CallKind::send;
        if (!send && (message.peer == any_rank || message.tag == any_tag))
          any.emplace(communicator->uid, call.rank->world_rank);
        const std::int32_t peer = members_.world_rank(*communicator, message.peer);
        if (message.peer < 0 || peer < 0) return;
        const std::int32_t self = call.rank->world_rank;
        (send ? sends : receives)[{communicator->uid, send ? self : peer, send ? peer : self, message.tag}].push_back(
            &call);
      });
    }
    for (const auto& [channel, sent] : sends) {
      const auto received = receives.find(channel);
      const auto& [uid, from, to, tag] = channel;
      if (received == receives.end() || any.count({uid, to}) || !countable(from) || !countable(to)) continue;
      const std::size_t pairs = std::min(sent.size(), received->second.size());
      for (std::size_t i = 1; i <= pairs; ++i)
        flow(*sent[sent.size() - i], *received->second[received->second.size() - i]);
    }
  }

  /// Every call of the rank that is remembered was timed, in one thread, and the rank has finalized.
  bool countable(std::int32_t number) {
    const auto [known, is_new] = countable_.try_emplace(number, false);
    if (!is_new) return known->second;
    const RankSnapshot* const found = members_.find(number);
    if (!found) return false;
    const RankSnapshot& rank = *found;
    if (rank.state != ProcessState::finalized || rank.threads.size() != 1) return false;
    const auto& finished = rank.threads[0].finished;
    return known->second = std::all_of(finished.begin(), finished.end(), [](const CallSnapshot& call) {
             if (call.left <= call.entered) return false;
             // These receive, or send, without a call of their own for each message.
             const std::string group =
                 call.function < recorded_functions().size() ? recorded_functions()[call.function].group : "";
             return group != "probe" && group.find("persistent") == std::string::npos &&
                    group.find("partitioned") == std::string::npos;
           });
  }

  void flow(const TimelineCall& send, const TimelineCall& receive) {
    if (send.begin > receive.end) return;  // not the same message
    const std::string id = std::to_string(++flows_);
    Json begin = {{"ph", "s"},
                  {"id", id},
                  {"name", "message"},
                  {"cat", "message"},
                  {"pid", pid_of(*send.rank)},
                  {"tid", tid_of(*send.rank, send.thread->slot)},
                  {"ts", microseconds(send.begin)}};
    Json end = {{"ph", "f"},
                {"bp", "e"},
                {"id", id},
                {"name", "message"},
                {"cat", "message"},
                {"pid", pid_of(*receive.rank)},
                {"tid", tid_of(*receive.rank, receive.thread->slot)},
                {"ts", microseconds(receive.end)}};
    events_.push_back(std::move(begin));
    events_.push_back(std::move(end));
  }

  CallSites& places_;
  const Members members_;
  const std::vector<TimelineCall> calls_;
  double begin_ = 0;
  Json events_ = Json::array();
  std::map<std::string, int> hosts_;
  std::map<std::int32_t, bool> countable_;
  std::uint64_t flows_ = 0;
};

}  // namespace

std::string chrome_trace(const JobView& view, const MpiReport& report, CallSites& places) {
  return Trace(view, report, places).text();
}

}  // namespace bestride::inline cli
