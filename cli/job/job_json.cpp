// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_json.hpp"

#include <algorithm>

#include "cli/job/call_site.hpp"
#include "cli/job/rank_line.hpp"
#include "telemetry/record/reduction.hpp"
#include "telemetry/report/json_writer.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

const char* name_of(Activity activity) {
  switch (activity) {
    case Activity::none: return "none";
    case Activity::polling: return "polling";
    case Activity::calling: return "calling";
  }
  return "";
}

const char* name_of(ProcessState state) {
  switch (state) {
    case ProcessState::starting: return "starting";
    case ProcessState::initialized: return "initialized";
    case ProcessState::finalizing: return "finalizing";
    case ProcessState::finalized: return "finalized";
  }
  return "";
}

class JobText {
 public:
  JobText(JsonWriter& json, std::size_t calls) : json_(json), calls_(calls) {}

  void job(const JobView& view, const JobStacks* job_stacks) {
    json_.open_object().member("name", view.job.name).member("progressing", view.progresses());
    json_.key("ranks").open_array();
    for (std::size_t i = 0; i < view.job.ranks.size(); ++i) rank(view, i);
    json_.close_array();
    ranks("waiting", view.diagnosis.waiting);
    ranks("culprits", view.diagnosis.culprits);
    ranks("deadlocked", view.diagnosis.deadlocked);
    json_.key("cycles").open_array();
    for (const Diagnosis::Cycle& cycle : view.diagnosis.cycles) {
      json_.open_array();
      for (const std::int32_t number : cycle.ranks) json_.value(number);
      json_.close_array();
    }
    json_.close_array().key("mismatches").open_array();
    for (const CollectiveMismatch& mismatch : view.graph.mismatches) {
      json_.open_object()
          .member("communicator", communicator_text(view, mismatch.communicator))
          .member("ordinal", mismatch.ordinal);
      json_.key("variants").open_array();
      for (const auto& variant : mismatch.variants) {
        json_.open_object().member("function", function_name(variant.function));
        if (variant.root != no_rank) json_.member("root", variant.root);
        if (variant.bytes > 0) json_.member("bytes", variant.bytes);
        if (variant.reduction != 0)
          json_.member("operation", name(reduction_op_of(variant.reduction)))
              .member("numbers", name(type_of(variant.reduction)));
        ranks("ranks", variant.ranks);
        json_.close_object();
      }
      json_.close_array();
      if (!mismatch.pairs.empty()) {
        json_.key("pairs").open_array();
        for (const auto& pair : mismatch.pairs)
          json_.open_object()
              .member("from", pair.from)
              .member("to", pair.to)
              .member("sent", pair.sent)
              .member("expected", pair.expected)
              .close_object();
        json_.close_array();
      }
      json_.close_object();
    }
    json_.close_array().key("problems").open_array();
    for (const std::string& problem : view.job.problems) json_.value(problem);
    json_.close_array();
    if (job_stacks) stacks(*job_stacks);
    json_.close_object();
  }

  void stacks(const JobStacks& stacks) {
    json_.key("stacks").open_object().member("longest_stop_seconds", stacks.longest_stop).key("tree").open_array();
    for (const StackNode& node : stacks.tree) stack_node(node);
    json_.close_array();
    stack_failures("failed", stacks.failures);
    stack_failures("cut", stacks.cut);
    json_.key("problems").open_array();
    for (const std::string& problem : stacks.problems) json_.value(problem);
    json_.close_array().close_object();
  }

 private:
  void ranks(const char* name, const std::vector<std::int32_t>& numbers) { write_ranks(json_, name, numbers); }

  void stack_failures(const char* name, const std::vector<StackFailure>& failures) {
    json_.key(name).open_array();
    for (const StackFailure& failure : failures) {
      json_.open_object().member("rank", failure.rank).member("pid", failure.pid);
      if (failure.tid != 0) json_.member("tid", failure.tid);
      json_.member("problem", failure.problem).close_object();
    }
    json_.close_array();
  }

  void stack_node(const StackNode& node) {
    json_.open_object();
    if (!node.thread.empty()) json_.member("thread", node.thread);
    if (node.cut) json_.member("cut", true);
    ranks("ranks", node.ranks);
    json_.member("threads", node.threads).key("frames").open_array();
    for (const NamedFrame& frame : node.frames) stack_frame(frame);
    if (node.kind == StackNode::Kind::itself) stack_frame(node.place);
    json_.close_array();
    if (node.kind == StackNode::Kind::itself) json_.member("itself", true);
    json_.key("children").open_array();
    for (const StackNode& child : node.children) stack_node(child);
    json_.close_array().close_object();
  }

  void stack_frame(const NamedFrame& frame) {
    json_.open_object().member("function", frame.function).member("module", frame.module);
    if (!frame.file.empty()) json_.member("file", frame.file);
    if (frame.line != 0) json_.member("line", frame.line);
    json_.close_object();
  }

  void rank(const JobView& view, std::size_t index) {
    const RankSnapshot& rank = view.job.ranks[index];
    json_.open_object()
        .member("rank", rank.world_rank)
        .member("size", rank.world_size)
        .member("pid", rank.pid)
        .member("host", rank.host)
        .member("executable", rank.executable)
        .member("alive", rank.alive)
        .member("state", name_of(rank.state))
        .member("activity", name_of(view.activities[index]));
    if (rank.gone()) json_.member("end", end_of_rank(rank));
    if (!rank.wait.call.empty()) json_.member("system_call", rank.wait.call);
    json_.key("threads").open_array();
    for (const ThreadSnapshot& found : rank.threads) thread(rank, found);
    json_.close_array().key("requests").open_array();
    for (const RequestSnapshot& found : rank.requests) request(rank, found);
    json_.close_array().key("waits").open_array();
    if (const RankWaits* const waits = view.graph.find(rank.world_rank); waits && waits->snapshot == index)
      for (const ThreadWait& wait : waits->threads) thread_wait(rank, wait);
    json_.close_array().close_object();
  }

  void thread(const RankSnapshot& rank, const ThreadSnapshot& thread) {
    json_.open_object()
        .member("tid", thread.tid)
        .member("process_state", std::string(1, thread.state))
        .member("waiting_channel", thread.channel)
        .member("in_mpi", thread.in_mpi)
        .member("calls", thread.calls)
        .member("polls", thread.polls);
    if (rank.alive && !thread.in_mpi) json_.member("seconds_since_mpi", rank.seconds_since(thread.last_left));
    if (thread.current) {
      json_.key("current");
      call(rank, *thread.current);
    }
    json_.key("finished").open_array();
    const std::size_t most = std::min(calls_, thread.finished.size());
    for (std::size_t i = thread.finished.size() - most; i < thread.finished.size(); ++i) call(rank, thread.finished[i]);
    json_.close_array().close_object();
  }

  void communicator(const RankSnapshot& rank, std::uint32_t index) {
    if (index != no_index) json_.member("communicator", communicator_text(rank, index, sites_));
  }

  void call(const RankSnapshot& rank, const CallSnapshot& call) {
    json_.open_object().member("function", function_name(call.function)).member("number", call.number);
    communicator(rank, call.communicator);
    if (call.ordinal != 0) json_.member("ordinal", call.ordinal);
    // Special ranks are negative: -2 any, -3 MPI_PROC_NULL, -4 MPI_ROOT.
    if (call.peer != no_rank) json_.member("peer", call.peer);
    if (call.tag != no_tag) json_.member("tag", call.tag);
    if (call.second_peer != no_rank) json_.member("second_peer", call.second_peer);
    json_.member("bytes", call.bytes);
    if (rank.alive) json_.member("seconds_since_entry", rank.seconds_since(call.entered));
    if (call.left > call.entered)
      json_.member("seconds", static_cast<double>(call.left - call.entered) / rank.ticks_per_second);
    site(rank, call.site);
    json_.close_object();
  }

  void site(const RankSnapshot& rank, std::uint32_t index) {
    const CallSites::Place place = sites_.place(rank, index);
    if (place.module.empty()) return;
    json_.key("site").open_object().member("module", place.module).member("address", place.address);
    if (!place.location.function.empty()) json_.member("function", place.location.function);
    if (!place.location.file.empty()) json_.member("file", place.location.file).member("line", place.location.line);
    json_.close_object();
  }

  void request(const RankSnapshot& rank, const RequestSnapshot& request) {
    json_.open_object().member("function", function_name(request.function));
    communicator(rank, request.communicator);
    if (request.ordinal != 0) json_.member("ordinal", request.ordinal);
    if (request.peer != no_rank) json_.member("peer", request.peer);
    if (request.tag != no_tag) json_.member("tag", request.tag);
    json_.member("bytes", request.bytes);
    if (rank.alive) json_.member("seconds_since_post", rank.seconds_since(request.posted));
    json_.close_object();
  }

  void thread_wait(const RankSnapshot& rank, const ThreadWait& wait) {
    int tid = 0;
    for (const ThreadSnapshot& thread : rank.threads)
      if (thread.slot == wait.slot) tid = thread.tid;
    json_.open_object()
        .member("tid", tid)
        .member("kind", wait.kind == WaitKind::all ? "all" : "any")
        .member("resolved", wait.resolved)
        .key("conditions")
        .open_array();
    for (const WaitCondition& condition : wait.conditions) {
      json_.open_object()
          .member("kind", condition.kind == WaitKind::all ? "all" : "any")
          .member("required", condition.required)
          .member("matched", condition.matched)
          .member("unseen", condition.unseen);
      ranks("ranks", {condition.ranks.begin(), condition.ranks.end()});
      json_.close_object();
    }
    json_.close_array().close_object();
  }

  JsonWriter& json_;
  CallSites sites_;
  const std::size_t calls_;
};

}  // namespace

void write_ranks(JsonWriter& json, const char* name, const std::vector<std::int32_t>& ranks) {
  json.key(name).open_array();
  for (const std::int32_t rank : ranks) json.value(rank);
  json.close_array();
}

void write_job(JsonWriter& json, const JobView& view, std::size_t calls, const JobStacks* stacks) {
  JobText(json, calls).job(view, stacks);
}

}  // namespace bestride::inline cli
