// SPDX-License-Identifier: Apache-2.0
#include "report.hpp"

#include <mpi.h>

#include <algorithm>

#include "apps/common/text.hpp"
#include "base/median.hpp"

namespace zero_step {

using apps::format;

Summary summarize(const std::vector<Unit>& units, const Outcome& outcome, const Comparison& comparison) {
  Summary summary;
  MPI_Comm_size(MPI_COMM_WORLD, &summary.ranks);
  summary.parameters = parameters_of(units);
  summary.units = units.size();
  std::vector<double> slowest = outcome.step_s;
  for (const PhaseTotal& phase : outcome.phases)
    slowest.push_back(phase.seconds), slowest.push_back(double(phase.bytes));
  MPI_Allreduce(MPI_IN_PLACE, slowest.data(), int(slowest.size()), MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  const std::size_t steps = outcome.step_s.size();
  summary.step_s.assign(slowest.begin(), slowest.begin() + std::ptrdiff_t(steps));
  for (int phase = 0; phase < phase_count; ++phase)
    summary.phases[phase] = {slowest[steps + 2 * phase], outcome.phases[phase].calls,
                             static_cast<long long>(slowest[steps + 2 * phase + 1])};
  long long counts[3] = {comparison.values, comparison.activations, comparison.wrong};
  MPI_Allreduce(MPI_IN_PLACE, counts, 3, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  summary.comparison = {counts[0], counts[1], counts[2], comparison.first_wrong};
  return summary;
}

std::string as_text(const Options& options, const Summary& summary) {
  std::string text =
      format("zero_step: %d layers of width %d, %zu parameters as %s in %zu units over %d ranks, %s calls%s\n",
             options.layers, options.hidden, summary.parameters, name_of(options.element), summary.units, summary.ranks,
             name_of(options.form), options.exact ? ", exact sums" : "");
  text += format("  %d steps of %d micro-batches, %.3f ms a step (median); of all steps, slowest rank:\n",
                 options.steps, options.micro, bestride::median_of(summary.step_s) * 1e3);
  for (int phase = 0; phase < phase_count; ++phase) {
    const PhaseTotal& total = summary.phases[phase];
    text += format("  %-16s %12.3f ms", name_of(Phase(phase)), total.seconds * 1e3);
    if (total.calls) text += format("  %8lld calls  %14lld bytes received by a rank", total.calls, total.bytes);
    text += "\n";
  }
  if (options.verify)
    text += format("  checked          %lld values and %lld gathers against the reference%s: %lld wrong\n",
                   summary.comparison.values, summary.comparison.activations, options.exact ? ", bit by bit" : "",
                   summary.comparison.wrong);
  return text;
}

std::string as_json(const Options& options, const Summary& summary) {
  std::string text = format(
      "{\n  \"program\": \"zero_step\", \"ranks\": %d, \"layers\": %d, \"hidden\": %d, \"vocabulary\": %d, \"micro\": "
      "%d, "
      "\"steps\": %d,\n",
      summary.ranks, options.layers, options.hidden, options.vocabulary, options.micro, options.steps);
  text += format("  \"type\": \"%s\", \"form\": \"%s\", \"exact\": %s, \"parameters\": %zu, \"units\": %zu,\n",
                 name_of(options.element), name_of(options.form), options.exact ? "true" : "false", summary.parameters,
                 summary.units);
  text += "  \"phases\": {\n";
  for (int phase = 0; phase < phase_count; ++phase)
    text += format("    \"%s\": {\"seconds\": %.6f, \"calls\": %lld, \"bytes\": %lld}%s\n", name_of(Phase(phase)),
                   summary.phases[phase].seconds, summary.phases[phase].calls, summary.phases[phase].bytes,
                   phase + 1 < phase_count ? "," : "");
  text += "  },\n  \"step_s\": [";
  for (std::size_t step = 0; step < summary.step_s.size(); ++step)
    text += format("%s%.6f", step ? ", " : "", summary.step_s[step]);
  text += "],\n";
  text += format("  \"verified\": %s, \"values_checked\": %lld, \"gathers_checked\": %lld, \"wrong\": %lld\n}\n",
                 options.verify ? "true" : "false", summary.comparison.values, summary.comparison.activations,
                 summary.comparison.wrong);
  return text;
}

}  // namespace zero_step
