// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "cli/mpi_report/mpi_report.hpp"
#include "cli/mpi_report/table.hpp"
#include "telemetry/report/quantity.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t most_sites = 20, most_notes = 7, most_findings = 3;

double part(double seconds, double of) { return of > 0 ? seconds / of : 0; }

std::string decimals(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string rank_and_share(const MpiReport::Rank& rank) {
  return percent_text(rank.share()) + " (rank " + std::to_string(rank.rank) + ", " + seconds_text(rank.mpi_seconds) +
         ")";
}

std::string summary(const MpiReport& report) {
  const auto [least, most] =
      std::minmax_element(report.ranks.begin(), report.ranks.end(),
                          [](const MpiReport::Rank& a, const MpiReport::Rank& b) { return a.share() < b.share(); });
  std::string text = "  in MPI: " + percent_text(report.mean_share()) + " of the time of a rank (mean); least " +
                     rank_and_share(*least) + ", most " + rank_and_share(*most) + "\n";
  if (const auto& wait = report.collective_wait; wait.calls >= 10 && wait.seconds > 0)
    text += "  in the last " + count_text(wait.calls) +
            " collective calls: " + percent_text(wait.waited / wait.seconds) +
            " of their time was before the last member entered\n";
  return text;
}

}  // namespace

std::string mpi_report_text(const MpiReport& report) {
  std::string text = "bestride: " + report_heading(report);
  if (report.ranks.empty())
    text += "  no rank has a readable record; was the preload library loaded? ('bestride doctor PROGRAM')\n";
  else
    text += summary(report);
  for (std::size_t i = 0; i < report.findings.size() && i < most_findings; ++i)
    text += "  verdict: " + fitted(report.findings[i].kind + ": " + report.findings[i].text, 150) + "\n";
  const bool served = std::any_of(report.sites.begin(), report.sites.end(),
                                  [](const MpiReport::Site& site) { return !site.served.empty(); });
  if (!report.sites.empty())
    text += "\n" + table_row({"call", "at", "calls", "bytes", "time", "of MPI", "longest", "COV", "most",
                              served ? "  by" : "", served ? "saved" : ""});
  double shown = 0;
  for (std::size_t i = 0; i < report.sites.size() && i < most_sites; ++i) {
    const MpiReport::Site& site = report.sites[i];
    shown += site.seconds;
    const bool timed = site.timed > 0;
    text += table_row({site.function, site.place.empty() ? "?" : site.place, count_text(site.calls),
                       bytes_text(site.bytes), timed ? seconds_text(site.seconds) : "-",
                       timed ? percent_text(part(site.seconds, report.total.seconds)) : "-",
                       timed ? seconds_text(site.most_seconds) : "-", timed ? decimals(site.variation, 2) : "-",
                       timed ? std::to_string(site.most_rank) : "-", served ? "  " + joined(site.served) : "",
                       site.saved_seconds != 0 ? seconds_text(site.saved_seconds) : ""});
  }
  if (report.sites.size() > most_sites)
    text += "and " + plural(report.sites.size() - most_sites, "more place") + " with " +
            percent_text(part(report.total.seconds - shown, report.total.seconds)) + " of the MPI time\n";
  if (!report.sites.empty())
    text += table_row({"total", "", count_text(report.total.calls), bytes_text(report.total.bytes),
                       seconds_text(report.total.seconds)}) +
            "\nall ranks summed; COV: standard deviation over mean of the ranks; most: the rank with the most time" +
            (served ? "\nby: how derived types and device memory were moved; saved: the model's estimate" : "") + "\n";
  for (std::size_t i = 0; i < report.notes.size() && i < most_notes; ++i)
    text += "note: " + fitted(report.notes[i], 150) + "\n";
  return text;
}

}  // namespace bestride::inline cli
