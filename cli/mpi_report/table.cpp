// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_report/table.hpp"

#include <cstdio>
#include <cstdlib>
#include <set>

#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

std::string hosts_of(const MpiReport& report) {
  std::set<std::string> hosts;
  for (const MpiReport::Rank& rank : report.ranks) hosts.insert(rank.host);
  if (hosts.size() == 1) return " on " + fitted(*hosts.begin(), 40);
  return hosts.empty() ? "" : " on " + plural(hosts.size(), "host");
}

}  // namespace

std::string table_row(const std::vector<std::string>& cells) {
  static constexpr int widths[] = {-22, -40, 7, 9, 8, 8, 8, 5, 5, -16, 8};
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string cell = fitted(cells[i], static_cast<std::size_t>(std::abs(widths[i])));
    char text[128];
    std::snprintf(text, sizeof text, "%*s", widths[i], cell.c_str());
    line += (i ? " " : "") + std::string(text);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

std::string plural(std::size_t number, const std::string& word) {
  return std::to_string(number) + " " + word + (number == 1 ? "" : "s");
}

std::string report_heading(const MpiReport& report) {
  return "MPI time of job " + fitted(report.job, 40) + ": " + plural(report.ranks.size(), "rank") + hosts_of(report) +
         ", " + seconds_text(report.seconds) + ", " +
         fitted(report.executable.substr(report.executable.rfind('/') + 1), 40) + "\n";
}

}  // namespace bestride::inline cli
