// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "cli/mpi_report/mpi_report.hpp"
#include "cli/mpi_report/table.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_changes = 24;

/// A call at a place in two reports.
struct Change {
  std::string function, place;
  double seconds[2] = {0, 0};
  std::uint64_t calls[2] = {0, 0};
  double difference() const noexcept { return seconds[1] - seconds[0]; }
};

std::string signed_seconds(double seconds) { return (seconds > 0 ? "+" : "") + seconds_text(seconds); }

std::string compared(const std::string& what, const std::string& a, const std::string& b, const std::string& more) {
  return "  " + what + ": " + a + " -> " + b + (more.empty() ? "" : " (" + more + ")") + "\n";
}

}  // namespace

std::string mpi_report_comparison(const MpiReport& a, const MpiReport& b) {
  std::map<std::pair<std::string, std::string>, Change> found;
  for (const MpiReport* const report : {&a, &b})
    for (const MpiReport::Site& site : report->sites) {
      Change& change = found[{site.function, site.place}];
      const std::size_t side = report == &b;
      change.function = site.function;
      change.place = site.place;
      change.seconds[side] += site.seconds;
      change.calls[side] += site.calls;
    }
  std::vector<Change> changes;
  changes.reserve(found.size());
  for (auto& [key, change] : found) changes.push_back(change);
  std::stable_sort(changes.begin(), changes.end(), [](const Change& x, const Change& y) {
    return std::abs(x.difference()) > std::abs(y.difference());
  });
  std::string text = "A: " + report_heading(a) + "B: " + report_heading(b);
  text += compared("elapsed", seconds_text(a.seconds), seconds_text(b.seconds), signed_seconds(b.seconds - a.seconds));
  text += compared("in MPI (mean of the ranks)", percent_text(a.mean_share()), percent_text(b.mean_share()), "");
  text += compared("MPI time (all ranks)", seconds_text(a.total.seconds), seconds_text(b.total.seconds),
                   signed_seconds(b.total.seconds - a.total.seconds));
  text += compared("calls", count_text(a.total.calls), count_text(b.total.calls), "");
  if (a.size != b.size)
    text += "  the jobs have " + std::to_string(a.size) + " and " + std::to_string(b.size) +
            " ranks, so sums over ranks are not comparable\n";
  if (!changes.empty()) text += "\n" + table_row({"call", "at", "calls A", "calls B", "time A", "time B", "change"});
  for (std::size_t i = 0; i < changes.size() && i < most_changes; ++i)
    text += table_row({changes[i].function, changes[i].place.empty() ? "?" : changes[i].place,
                       count_text(changes[i].calls[0]), count_text(changes[i].calls[1]),
                       seconds_text(changes[i].seconds[0]), seconds_text(changes[i].seconds[1]),
                       signed_seconds(changes[i].difference())});
  if (changes.size() > most_changes)
    text += "and " + plural(changes.size() - most_changes, "more place") + " with smaller changes\n";
  return text;
}

}  // namespace bestride::inline cli
