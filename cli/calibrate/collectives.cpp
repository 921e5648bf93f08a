// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate/collectives.hpp"

#include <cstdio>

#include "cli/calibrate/progress.hpp"
#include "cli/common/installation.hpp"
#include "perfmodel/calibrate/collective/state.hpp"
#include "perfmodel/collective/choice.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {

std::string collective_state_path(const std::string& profile) { return profile + ".collectives.state"; }

CollectiveRun measure_collectives(const CalibrateOptions& options, const std::vector<std::string>& launcher,
                                  const std::string& program, const std::string& profile, const Rails& rails,
                                  CollectivePart part, double budget) {
  const std::string state = collective_state_path(profile);
  std::vector<std::string> command = launcher;
  const bool links = part == CollectivePart::links;
  command.insert(command.end(),
                 {"-n", std::to_string(options.ranks_between_hosts()), program, links ? "links" : "collectives",
                  "--state", state, "--budget", std::to_string(budget)});
  if (options.quick) command.push_back("--quick");
  if (links && options.restart) command.push_back("--restart");
  // Measuring the links needs the library only with rails.
  const Installation installation = Installation::find();
  if (!installation.preload.empty() && (!links || !rails.empty())) {
    command.insert(command.end(), {"--preload", installation.preload, "--profile", profile});
    if (!rails.empty()) command.insert(command.end(), {"--rails", list_of(rails)});
  }
  Progress progress(links ? "measuring the links between hosts" : "measuring collectives");
  CollectiveRun result;
  result.run = follow_measurement(command, {options.patience},
                                  [&](int done, int total, const std::string& at) { progress.show(done, total, at); });
  result.run.complete ? progress.finish() : progress.clear();
  end_if_incomplete(result.run, "measuring collectives", command[0]);
  result.values = read_collectives_state(state, result.run.configuration).values;
  return result;
}

void print_collectives(const CollectiveRun& run) {
  const LinkCosts link = run.values.filled_link();
  std::printf("\nbetween hosts: latency %s, %s/s a node, %s/s with one rank sending\n",
              seconds_text(link.latency_s).c_str(),
              bytes_text(static_cast<std::uint64_t>(1 / link.wire_byte_s)).c_str(),
              bytes_text(static_cast<std::uint64_t>(1 / link.stream_byte_s)).c_str());
  if (link.piece_bytes > 0)
    std::printf("long messages between hosts are fastest in pieces of %s\n",
                bytes_text(static_cast<std::uint64_t>(link.piece_bytes)).c_str());
  if (!run.run.preloaded) {
    std::printf(
        "collectives were not measured: the library could not be preloaded; predictions follow the links alone\n");
    return;
  }
  std::printf("collectives: measured %d points in %.0f s", run.run.measured, run.run.seconds);
  if (run.run.known > 0) std::printf(", %d were known", run.run.known);
  if (run.run.left_out > 0)
    std::printf(", %d left out for time ('bestride calibrate' again measures them)", run.run.left_out);
  std::printf("\n");
  if (run.values.settings.empty()) return;
  const CollectiveChooser chooser(parameters_of(run.values));
  const CollectiveSetting& setting = run.values.settings.front();
  std::printf("%-36s %10s %12s  chosen\n", "4 MiB, blocking", "library", "hierarchical");
  for (Collective what :
       {Collective::allgather, Collective::reduce_scatter, Collective::allreduce, Collective::broadcast}) {
    const CollectiveChoice choice = chooser.choose(setting.shape(what, true, 5));
    std::printf("%-36s %10s %12s  %s\n", std::string(name(what)).c_str(), seconds_text(choice.library_s).c_str(),
                seconds_text(choice.hierarchical_s).c_str(), choice.hierarchical ? "hierarchical" : "library");
  }
}

}  // namespace bestride::inline cli
