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
#include "telemetry/waits/call_kind.hpp"
#include "telemetry/waits/matched_messages.hpp"
#include "telemetry/waits/messages.hpp"

namespace bestride::inline cli {
namespace {

using Json = nlohmann::json;

/// Thread ids of the trace that are reserved for each rank.
constexpr int slots_per_rank = 32;
constexpr double log_tolerance = 2e-6;   ///< seconds
constexpr double least_duration = 0.05;  ///< microseconds

class Trace {
 public:
  Trace(const JobView& view, const MpiReport& report, CallSites& places)
      : places_(places), clocks_(view.job.ranks), members_(view.job.ranks), calls_(timeline(view, main_ring_size)) {
    begin_ = std::numeric_limits<double>::infinity();
    for (const TimelineCall& call : calls_) begin_ = std::min(begin_, call.begin);
    if (calls_.empty()) begin_ = report.started;
    name_threads(view);
    for (const TimelineCall& call : calls_) add(call);
    for (std::size_t i = 0; i < calls_.size(); ++i)
      calls_of_.try_emplace(calls_[i].rank->world_rank, i, i).first->second.second = i + 1;
    add_remembered_flows();
    add_counted_flows();
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
  struct FlowEnd {
    int pid, tid;
    double time;  ///< seconds, CLOCK_REALTIME
  };

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
    Json arguments = {{"call", call_text(*call.rank, *call.call, places_)}, {"number", call.call->number}};
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

  /// Large messages remembered at both ends: from the call that sent one to the call that completed its receive.
  void add_remembered_flows() {
    for (const MatchedMessage& message : matched_messages(members_)) {
      const TimelineCall* const send = call_at(*message.sender, message.sent->posted, posts_a_send);
      const TimelineCall* const receive = call_at(*message.receiver, message.received->completed, completes_a_receive);
      if (!receive) continue;
      if (send)
        flow(*send, *receive);
      else if (message.sender->threads.size() == 1)
        flow(add_post(message), *receive);
    }
  }
  /// A call that begins a send is short and usually not timed; the message log has its time.
  FlowEnd add_post(const MatchedMessage& message) {
    const FlowEnd at{pid_of(*message.sender), tid_of(*message.sender, message.sender->threads[0].slot),
                     clocks_.realtime(*message.sender, message.sent->posted)};
    events_.push_back({{"ph", "X"},
                       {"name", "send to rank " + std::to_string(message.receiver->world_rank)},
                       {"cat", "message"},
                       {"pid", at.pid},
                       {"tid", at.tid},
                       {"ts", microseconds(at.time)},
                       {"dur", least_duration},
                       {"args", {{"bytes", message.sent->bytes}, {"note", "the call was not timed"}}}});
    return at;
  }
  static bool posts_a_send(const CallSnapshot& call) {
    const telemetry::CallKind kind = telemetry::kind_of(call.function, false);
    return kind == telemetry::CallKind::send || kind == telemetry::CallKind::exchange ||
           function_name(call.function).starts_with("MPI_Start");
  }
  static bool completes_a_receive(const CallSnapshot& call) {
    const telemetry::CallKind kind = telemetry::kind_of(call.function, false);
    return kind == telemetry::CallKind::wait_all || kind == telemetry::CallKind::wait_any ||
           function_name(call.function).starts_with("MPI_Test") ||
           ((kind == telemetry::CallKind::receive || kind == telemetry::CallKind::exchange) &&
            may_block(call.function, false));
  }
  /// The call of a rank at a time of its message log; null if none such is remembered.
  const TimelineCall* call_at(const RankSnapshot& rank, std::uint64_t ticks,
                              bool (*is_wanted)(const CallSnapshot&)) const {
    const auto calls = calls_of_.find(rank.world_rank);
    if (calls == calls_of_.end()) return nullptr;
    const auto [first, last] = calls->second;
    // The log reads the clock separately from the calls.
    const auto tolerance = static_cast<std::uint64_t>(log_tolerance * rank.ticks_per_second);
    const TimelineCall* found = nullptr;
    for (std::size_t i = first; i < last; ++i) {
      const CallSnapshot& call = *calls_[i].call;
      if (call.entered <= ticks + tolerance && (call.left <= 1 || ticks <= call.left + tolerance) && is_wanted(call))
        found = &calls_[i];
    }
    return found;
  }

  /// Communicator, sender, receiver, tag.
  using Channel = std::tuple<std::uint64_t, std::int32_t, std::int32_t, std::int32_t>;

  /// Messages of one channel don't overtake each other (MPI-4.1, 3.5), so if both ranks have finalized, the n-th last
  /// send matches the n-th last receive, provided that all later calls are remembered and timed. The call that
  /// completed a nonblocking receive is not known.
  void add_counted_flows() {
    std::map<Channel, std::vector<const TimelineCall*>> sends, receives;
    std::set<std::pair<std::uint64_t, std::int32_t>> any;  // receivers that took messages of unknown source or tag
    for (const TimelineCall& call : calls_) {
      const CommunicatorSnapshot* const communicator = call.rank->communicator(call.call->communicator);
      if (!communicator || communicator->uid == 0 || communicator->kind != CommunicatorKind::intra) continue;
      each_message(*call.call, [&](const Message& message) {
        const bool send = message.kind == telemetry::CallKind::send;
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
      for (std::size_t i = 1; i <= pairs; ++i) {
        const TimelineCall& receive = *received->second[received->second.size() - i];
        if (may_block(receive.call->function, false)) flow(*sent[sent.size() - i], receive);
      }
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
    if (!joined_.emplace(&send, &receive).second) return;
    flow({pid_of(*send.rank), tid_of(*send.rank, send.thread->slot), send.begin}, receive);
  }
  void flow(const FlowEnd& send, const TimelineCall& receive) {
    if (send.time > receive.end) return;  // not the same message, or the clocks differ by more than the transfer time
    add_flow_end("s", ++flows_, send);
    add_flow_end("f", flows_, {pid_of(*receive.rank), tid_of(*receive.rank, receive.thread->slot), receive.end});
  }
  void add_flow_end(const char* phase, std::uint64_t id, const FlowEnd& end) {
    events_.push_back({{"ph", phase},
                       {"bp", "e"},
                       {"id", std::to_string(id)},
                       {"name", "message"},
                       {"cat", "message"},
                       {"pid", end.pid},
                       {"tid", end.tid},
                       {"ts", microseconds(end.time)}});
  }

  CallSites& places_;
  const HostClocks clocks_;
  const Members members_;
  const std::vector<TimelineCall> calls_;
  double begin_ = 0;
  Json events_ = Json::array();
  std::map<std::string, int> hosts_;
  std::map<std::int32_t, std::pair<std::size_t, std::size_t>> calls_of_;  ///< by rank: first, end
  std::set<std::pair<const TimelineCall*, const TimelineCall*>> joined_;
  std::map<std::int32_t, bool> countable_;
  std::uint64_t flows_ = 0;
};

}  // namespace

std::string chrome_trace(const JobView& view, const MpiReport& report, CallSites& places) {
  return Trace(view, report, places).text();
}

}  // namespace bestride::inline cli
