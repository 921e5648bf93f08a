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

/// Who carries out a collective of ranks on one node.
enum class OnOneNode { library, shared_memory, if_any_has_gaps };

struct Answer {
  CollectiveShape shape;
  std::string profile = "built-in", problem;
  OnOneNode on_one_node{};  ///< if there is one node
  CollectiveMeasurements measured;
  LinkCosts link{};
  Rails rails;
  std::string mode;
  CollectiveChoice choice;
  double bound = 0, library_wire = 0, hierarchical_wire = 0;  ///< bytes over the most loaded link of a node
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

/// The setting that leaves all collectives to the MPI library; "" if none does.
std::string leaving_setting() {
  const Settings& settings = Settings::get();
  if (settings.flag("BESTRIDE_DISABLE")) return "BESTRIDE_DISABLE=1 leaves every call to it";
  if (settings.text("BESTRIDE_ALL_RANKS") == "0") return "BESTRIDE_ALL_RANKS=0 leaves every collective to it";
  if (settings.text("BESTRIDE_COLLECTIVES") == "library") return "BESTRIDE_COLLECTIVES=library forces it";
  return "";
}

void choose_for_one_node(Answer& it, const UsedProfile& used) {
  it.because = leaving_setting();
  if (!it.because.empty()) return;
  if (it.shape.ranks < 2) {
    it.because = "there is one rank";
    return;
  }
  if (it.shape.ranks > most_ranks_on_one_node) {
    it.because = "at most " + std::to_string(most_ranks_on_one_node) + " ranks share memory";
    return;
  }
  const bool always = it.mode == "hierarchical";
  if (!it.shape.blocking) {
    if (nonblocking_on_one_node(it.shape.what, it.shape.bytes, it.shape.ranks, always, used.one_node))
      it.on_one_node = OnOneNode::shared_memory;
  } else {
    switch (choose_on_one_node(it.shape.what, it.shape.bytes, it.shape.ranks, always, used.one_node)) {
      case OneNodeChoice::shared_memory: it.on_one_node = OnOneNode::shared_memory; break;
      case OneNodeChoice::if_any_has_gaps: it.on_one_node = OnOneNode::if_any_has_gaps; break;
      case OneNodeChoice::library: break;
    }
  }
  if (always) {
    it.because = "BESTRIDE_COLLECTIVES=hierarchical forces it wherever it is possible";
  } else if (!it.shape.blocking && it.shape.bytes == 0) {
    it.because = "there are no bytes to move";
  } else {
    const bool measured = used.loaded && used.loaded->one_node.any();
    it.because = measured ? "as measured with " + std::to_string(used.loaded->one_node.ranks) + " ranks"
                          : std::string("by the built-in bounds of such sizes");
  }
}

std::string because(const Answer& it, const CollectiveParameters& parameters) {
  const CollectiveChoice& choice = it.choice;
  if (const std::string leaving = leaving_setting(); !leaving.empty()) return leaving;
  if (it.shape.bytes == 0) return "there are no bytes to move";
  if (it.mode != "auto") return "BESTRIDE_COLLECTIVES=" + it.mode + " forces it";
  char text[128];
  if (choice.hierarchical)
    std::snprintf(text, sizeof text, "predicted %.2f times as fast as the library's own",
                  choice.library_s / choice.hierarchical_s);
  else if (!choice.has_advantage)
    return "the hierarchy saves too few bytes and was not measured (calibrate)";
  else
    std::snprintf(text, sizeof text, "the hierarchy is not predicted to be at least %.0f %% faster",
                  parameters.margin * 100);
  return text;
}

Answer answer_to(const CollectiveQuestion& question) {
  Answer it;
  it.shape = shape_of(question);
  const UsedProfile used = find_used_profile();
  it.mode = Settings::get().text("BESTRIDE_COLLECTIVES");
  if (used.loaded)
    it.profile = used.name;
  else
    it.problem = used.problem;
  if (it.shape.nodes < 2) {
    if (used.loaded && !used.loaded->one_node.any()) it.problem = "it has no measured collectives within one node";
    choose_for_one_node(it, used);
    return it;
  }
  if (used.loaded) {
    it.measured = used.loaded->collectives();
    it.rails = used.loaded->rails;
    if (!it.measured.any()) it.problem = "it has no measured link";
  }
  CollectiveParameters parameters = parameters_of(it.measured, collective_mode(it.mode));
  if (question.mbit > 0) {
    if (it.measured.any()) fail("--mbit: jobs use the link that was measured in " + it.profile);
    parameters.use_job_link({parameters.link.latency_s, 8e-6 / question.mbit});
  }
  it.link = parameters.job_link;
  it.choice = CollectiveChooser(parameters).choose(it.shape);
  if (!leaving_setting().empty()) it.choice.hierarchical = false;
  it.bound = wire_lower_bound(it.shape);
  it.library_wire = library_cost(it.shape, parameters.job_link).wire_bytes;
  it.hierarchical_wire = hierarchical_cost(it.shape, parameters.job_link).wire_bytes;
  it.because = because(it, parameters);
  return it;
}

std::string size_text(double bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); }

const char* way_of(const CollectiveChoice& choice) { return choice.hierarchical ? "hierarchical" : "library"; }

void print_alternative(const char* what, double seconds, double wire, const Answer& it) {
  char ratio[64] = "";
  if (it.bound > 0)
    std::snprintf(ratio, sizeof ratio, ", %s on a link, %.2f of the lower bound", size_text(wire).c_str(),
                  wire / it.bound);
  const std::string chosen = std::string_view(what) == way_of(it.choice) ? "  <- chosen: " + it.because : "";
  std::printf("  %-12s predicted %s%s%s\n", what, seconds_text(seconds).c_str(), ratio, chosen.c_str());
}

void print_one_node(const Answer& it) {
  const auto line = [&it](const char* what, OnOneNode who) {
    std::printf("  %s%s\n", what, it.on_one_node == who ? ("  <- chosen: " + it.because).c_str() : "");
  };
  line("the MPI library", OnOneNode::library);
  line("shared memory", OnOneNode::shared_memory);
  if (it.on_one_node == OnOneNode::if_any_has_gaps)
    line("shared memory if a datatype has gaps, else the MPI library", OnOneNode::if_any_has_gaps);
  if (leaving_setting().empty() && it.on_one_node != OnOneNode::shared_memory && it.shape.ranks > 1 &&
      it.shape.ranks <= most_ranks_on_one_node)
    std::printf("  with more ranks than processors: shared memory\n");
}

void print_text(const CollectiveQuestion& question, const Answer& it) {
  std::printf("collective %s, %s, %s\n", question.collective.c_str(),
              size_text(static_cast<double>(it.shape.bytes)).c_str(), it.shape.blocking ? "blocking" : "nonblocking");
  if (it.shape.nodes < 2)
    std::printf("ranks      %d on one node\n", it.shape.ranks);
  else
    std::printf("ranks      %d on %d nodes, %s\n", it.shape.ranks, it.shape.nodes,
                question.cyclic ? "placed round-robin" : "consecutive on a node");
  std::printf("profile    %s\n", it.profile.c_str());
  if (!it.problem.empty()) std::printf("           %s\n", it.problem.c_str());
  if (it.shape.nodes < 2) return print_one_node(it);
  std::printf("link       %s/s a node, %s/s with one rank sending, latency %s\n",
              size_text(1 / it.link.wire_byte_s).c_str(), size_text(1 / it.link.stream_byte_s).c_str(),
              seconds_text(it.link.latency_s).c_str());
  if (!it.measured.any())
    std::printf("           %s; a job measures it in MPI_Init\n",
                it.link.wire_byte_s > parameters_of({}).link.wire_byte_s ? "as given" : "assumed (--mbit)");
  if (!it.rails.empty())
    std::printf("rails      %s: each local rank takes one, and the link was measured so\n", list_of(it.rails).c_str());
  if (it.choice.hierarchical)
    std::printf("chunks     %s of each rank's slice, %d in flight\n",
                size_text(static_cast<double>(it.choice.chunk_bytes)).c_str(), it.choice.in_flight);
  print_alternative("library", it.choice.library_s, it.library_wire, it);
  print_alternative("hierarchical", it.choice.hierarchical_s, it.hierarchical_wire, it);
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
  if (it.shape.nodes < 2) {
    constexpr const char* words[] = {"library", "shared_memory", "shared_memory_if_gaps"};
    json.member("choice", words[static_cast<int>(it.on_one_node)]).member("because", it.because).close_object();
    std::fputs(json.text().c_str(), stdout);
    return;
  }
  if (!it.rails.empty()) json.member("rails", list_of(it.rails));
  json.key("seconds")
      .open_object()
      .member("library", it.choice.library_s)
      .member("hierarchical", it.choice.hierarchical_s)
      .close_object();
  json.key("wire_bytes").open_object().member("library", it.library_wire).member("hierarchical", it.hierarchical_wire);
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
