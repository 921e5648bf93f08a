// SPDX-License-Identifier: Apache-2.0
#include "cli/explain/collective.hpp"

#include <cstdio>
#include <string_view>

#include "base/variables.hpp"
#include "cli/common/command.hpp"
#include "cli/explain/used_profile.hpp"
#include "perfmodel/collective/choice.hpp"
#include "perfmodel/collective/one_node.hpp"
#include "perfmodel/profile/profile.hpp"
#include "telemetry/report/json_writer.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

struct Answer {
  CollectiveShape shape;
  std::string profile = "built-in", problem;
  CollectiveMeasurements measured;
  LinkCosts link{};
  Rails rails;
  std::string mode;
  OneNodeLimits limits;
  CollectiveChoice choice;
  double bound = 0, library_wire = 0, tested_wire = 0,
         hierarchical_wire = 0;  ///< bytes over the most loaded link of a node
  std::string because;
};

CollectiveShape shape_of(const CollectiveQuestion& question) {
  CollectiveShape shape;
  parse(question.collective, &shape.what);
  bool good = false;
  shape.bytes = parse_size(question.bytes, &good);
  if (!good) fail("'" + question.bytes + "' is no size; give bytes, with K, M or G for powers of 1024");
  if (question.ranks < question.nodes)
    fail(std::to_string(question.ranks) + " ranks can't be on " + std::to_string(question.nodes) +
         " nodes; --ranks counts those of all nodes");
  shape.nodes = question.nodes;
  shape.ranks = question.ranks;
  shape.max_ranks_per_node = (question.ranks + question.nodes - 1) / question.nodes;
  shape.min_ranks_per_node = question.ranks / question.nodes;
  shape.ring_entries = question.cyclic ? shape.max_ranks_per_node : 1;
  shape.blocking = !question.nonblocking;
  return shape;
}

std::string because(const Answer& it, const CollectiveParameters& parameters) {
  const CollectiveChoice& choice = it.choice;
  if (it.shape.nodes < 2) return "all ranks are on one node";
  if (it.shape.bytes == 0) return "there are no bytes to move";
  if (it.mode != "auto") return "BESTRIDE_COLLECTIVES=" + it.mode + " forces it";
  char text[128];
  if (choice.tested)
    std::snprintf(text, sizeof text, "measured %.2f times as fast as the library's blocking form",
                  choice.library_s / choice.tested_s);
  else if (choice.hierarchical)
    std::snprintf(text, sizeof text, "predicted %.2f times as fast as the library's own",
                  choice.library_s / choice.hierarchical_s);
  else
    std::snprintf(text, sizeof text, "the hierarchy is not predicted to be at least %.0f %% faster",
                  parameters.margin * 100);
  return text;
}

Answer answer_to(const CollectiveQuestion& question) {
  Answer it;
  it.shape = shape_of(question);
  const UsedProfile used = find_used_profile();
  it.limits = used.one_node;
  if (used.loaded) {
    it.measured = used.loaded->collectives();
    it.profile = used.name;
    it.rails = used.loaded->rails;
    if (!it.measured.any()) it.problem = "it has no measured link";
  } else {
    it.problem = used.problem;
  }
  it.mode = Settings::get().text("BESTRIDE_COLLECTIVES");
  CollectiveParameters parameters = parameters_of(it.measured, collective_mode(it.mode));
  if (question.mbit > 0) {
    if (it.measured.any()) fail("--mbit: jobs use the link that was measured in " + it.profile);
    parameters.use_job_link({parameters.link.latency_s, 8e-6 / question.mbit});
  }
  it.link = parameters.job_link;
  it.choice = CollectiveChooser(parameters).choose(it.shape);
  it.bound = wire_lower_bound(it.shape);
  it.library_wire = library_cost(it.shape, parameters.job_link).wire_bytes;
  CollectiveShape nonblocking = it.shape;
  nonblocking.blocking = false;
  it.tested_wire = library_cost(nonblocking, parameters.job_link).wire_bytes;
  it.hierarchical_wire = hierarchical_cost(it.shape, parameters.job_link).wire_bytes;
  it.because = because(it, parameters);
  return it;
}

std::string size_text(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }

const char* way_of(const CollectiveChoice& choice) {
  return choice.hierarchical ? "hierarchical" : choice.tested ? "nonblocking" : "library";
}

void print_alternative(const char* what, double seconds, double wire, const Answer& it) {
  char ratio[64] = "";
  if (it.bound > 0)
    std::snprintf(ratio, sizeof ratio, ", %s on a link, %.2f of the lower bound", size_text(wire).c_str(),
                  wire / it.bound);
  const std::string chosen = std::string_view(what) == way_of(it.choice) ? "  <- chosen: " + it.because : "";
  std::printf("  %-12s predicted %s%s%s\n", what, seconds_text(seconds).c_str(), ratio, chosen.c_str());
}

const char* on_one_node(const CollectiveShape& shape, const OneNodeLimits& limits) {
  if (!shape.blocking)
    return nonblocking_on_one_node(shape.what, shape.bytes, shape.ranks, false, limits) ? "shared memory"
                                                                                        : "the MPI library";
  switch (choose_on_one_node(shape.what, shape.bytes, shape.ranks, false, limits)) {
    case OneNodeChoice::shared_memory: return "shared memory";
    case OneNodeChoice::if_any_has_gaps: return "shared memory if a datatype has gaps, else the MPI library";
    case OneNodeChoice::library: break;
  }
  return "the MPI library";
}

void print_text(const CollectiveQuestion& question, const Answer& it) {
  std::printf("collective %s, %s, %s\n", question.collective.c_str(),
              size_text(static_cast<double>(it.shape.bytes)).c_str(), it.shape.blocking ? "blocking" : "nonblocking");
  std::printf("ranks      %d on %d nodes, %s\n", it.shape.ranks, it.shape.nodes,
              question.cyclic ? "placed round-robin" : "consecutive on a node");
  std::printf("profile    %s\n", it.profile.c_str());
  if (!it.problem.empty()) std::printf("           %s\n", it.problem.c_str());
  std::printf("link       %s/s a node, %s/s with one rank sending, latency %s\n",
              size_text(1 / it.link.wire_byte_s).c_str(), size_text(1 / it.link.stream_byte_s).c_str(),
              seconds_text(it.link.latency_s).c_str());
  if (!it.measured.any() && it.shape.nodes > 1)
    std::printf("           %s; a job measures it in MPI_Init\n",
                it.link.wire_byte_s > parameters_of({}).link.wire_byte_s ? "as given" : "assumed (--mbit)");
  if (!it.rails.empty())
    std::printf("rails      %s: each local rank takes one, and the link was measured so\n", list_of(it.rails).c_str());
  if (it.choice.hierarchical)
    std::printf("chunks     %s of each rank's slice, %d in flight\n",
                size_text(static_cast<double>(it.choice.chunk_bytes)).c_str(), it.choice.in_flight);
  print_alternative("library", it.choice.library_s, it.library_wire, it);
  if (it.choice.tested_s > 0) print_alternative("nonblocking", it.choice.tested_s, it.tested_wire, it);
  print_alternative("hierarchical", it.choice.hierarchical_s, it.hierarchical_wire, it);
  if (it.shape.nodes < 2)
    std::printf("one node   %s; with more ranks than processors: shared memory\n", on_one_node(it.shape, it.limits));
}

void print_json(const CollectiveQuestion& question, const Answer& it) {
  JsonWriter json;
  json.open_object();
  json.member("format", "bestride-collective-explanation")
      .member("version", 1)
      .member("collective", question.collective);
  json.member("bytes", it.shape.bytes)
      .member("nodes", it.shape.nodes)
      .member("ranks", it.shape.ranks)
      .member("ring_entries", it.shape.ring_entries);
  json.member("blocking", it.shape.blocking).member("profile", it.profile);
  if (!it.rails.empty()) json.member("rails", list_of(it.rails));
  const bool tested = it.choice.tested_s > 0;
  json.key("seconds")
      .open_object()
      .member("library", it.choice.library_s)
      .member("hierarchical", it.choice.hierarchical_s);
  if (tested) json.member("nonblocking", it.choice.tested_s);
  json.close_object();
  json.key("wire_bytes").open_object().member("library", it.library_wire).member("hierarchical", it.hierarchical_wire);
  if (tested) json.member("nonblocking", it.tested_wire);
  json.member("lower_bound", it.bound).close_object();
  json.member("chunk", it.choice.chunk_bytes).member("in_flight", it.choice.in_flight);
  json.member("choice", way_of(it.choice)).member("because", it.because);
  json.close_object();
  std::fputs(json.text().c_str(), stdout);
}

}  // namespace

void explain_collective(const CollectiveQuestion& question, bool json) {
  const Answer it = answer_to(question);
  json ? print_json(question, it) : print_text(question, it);
}

}  // namespace bestride::inline cli
