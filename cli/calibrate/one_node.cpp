// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/one_node.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "cli/calibrate/progress.hpp"
#include "cli/common/command.hpp"
#include "cli/common/installation.hpp"
#include "model/processors.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

/// "allreduce 3 812.5 1104". False if it is no point.
bool add_point(const std::string& text, OneNodeMeasurements* values) {
  std::istringstream in(text);
  std::string id;
  std::size_t size = 0;
  double shared = 0, library = 0;
  if (!(in >> id >> size >> shared >> library) || size >= one_node_bytes.size() || !(shared > 0) || !(library > 0))
    return false;
  const auto call = std::find_if(one_node_calls.begin(), one_node_calls.end(),
                                 [&](const OneNodeCall& each) { return each.id() == id; });
  if (call == one_node_calls.end()) return false;
  OneNodeCurve& curve = values->curves[static_cast<std::size_t>(call - one_node_calls.begin())];
  curve.shared[size] = static_cast<float>(shared * 1e-9);
  curve.library[size] = static_cast<float>(library * 1e-9);
  return true;
}

std::string sizes_text(const OneNodeCall& call, const OneNodeBounds& bounds) {
  const auto text = [](std::int64_t bytes) { return bytes_text(static_cast<std::uint64_t>(bytes)); };
  if (!bounds.any()) return "none";
  if (call.sizes() == 1) return "all";
  if (bounds.least == 0) return bounds.most == OneNodeBounds::unbounded ? "all" : "up to " + text(bounds.most);
  return bounds.most == OneNodeBounds::unbounded ? "from " + text(bounds.least)
                                                 : text(bounds.least) + " to " + text(bounds.most);
}

/// The range of the ratios of both times.
std::string gain_text(const OneNodeCurve& curve) {
  double least = 0, most = 0;
  for (std::size_t i = 0; i < curve.shared.size(); ++i)
    if (const double gain = static_cast<double>(curve.library[i] / curve.shared[i]); gain > 0) {
      least = least > 0 ? std::min(least, gain) : gain;
      most = std::max(most, gain);
    }
  char text[64];
  std::snprintf(text, sizeof text, "%.2f to %.2f", least, most);
  return text;
}

}  // namespace

OneNodeRun measure_one_node(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                            const std::string& program, double budget) {
  constexpr double enough_s = 15, quick_s = 10;
  budget = std::min(budget, options.quick ? quick_s : enough_s);
  OneNodeRun result;
  const Installation installation = Installation::find();
  if (installation.preload.empty()) {
    result.left_out = "the library is not beside the command";
    return result;
  }
  const int processors = static_cast<int>(allowed_processors().size());
  const int ranks = options.ranks > 0 ? options.ranks : std::clamp(processors, 2, 16);
  std::vector<std::string> command = launcher;
  command.insert(command.end(), {"-n", std::to_string(ranks), program, "one-node", "--budget", std::to_string(budget),
                                 "--preload", installation.preload});
  if (options.quick) command.push_back("--quick");
  Progress progress("measuring collectives on this host");
  result.run = follow_measurement(command, {options.patience},
                                  [&](int done, int total, const std::string& at) { progress.show(done, total, at); });
  result.run.complete ? progress.finish() : progress.clear();
  if (result.run.interrupted) {
    std::fprintf(stderr, "bestride: interrupted; collectives on this host were not measured\n");
    finish(128 + result.run.interrupted);
  }
  // The launcher may refuse so many ranks; everything else is measured and written by now.
  if (!result.run.complete) {
    result.left_out = result.run.error;
    return result;
  }
  for (const auto& [event, text] : result.run.more) {
    if (event == "no-one-node") result.left_out = text;
    if (event == "one-node" && add_point(text, &result.values)) result.values.ranks = ranks;
  }
  if (!result.values.any() && result.left_out.empty())
    result.left_out = "other programs keep the processors busy; try when it is idle";
  return result;
}

void print_one_node(const OneNodeRun& run) {
  if (!run.values.any()) {
    std::printf("\ncollectives on this host are left out: %s\n", run.left_out.c_str());
    return;
  }
  std::printf("\ncollectives on this host, %d ranks: measured %d points in %.0f s", run.values.ranks, run.run.measured,
              run.run.seconds);
  if (run.run.left_out > 0) std::printf(", %d left out for time, or disturbed by other work", run.run.left_out);
  std::printf("\n%-36s %-22s %s\n", "data for each pair, or of the whole", "through shared memory",
              "library's time over ours");
  for (std::size_t i = 0; i < one_node_calls.size(); ++i) {
    const OneNodeCurve& curve = run.values.curves[i];
    if (!curve.any()) continue;
    std::printf("%-36s %-22s %s\n", one_node_calls[i].id().c_str(),
                sizes_text(one_node_calls[i], curve.bounds()).c_str(), gain_text(curve).c_str());
  }
}

}  // namespace bestride::inline cli
