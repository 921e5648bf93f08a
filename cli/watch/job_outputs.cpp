// SPDX-License-Identifier: Apache-2.0
#include "cli/watch/job_outputs.hpp"

#include <cstdio>

#include "base/replace_file.hpp"
#include "cli/mpi_report/metrics.hpp"
#include "cli/mpi_report/page.hpp"
#include "cli/mpi_report/trace.hpp"
#include "cli/watch/advice.hpp"
#include "cli/watch/finding_text.hpp"

namespace bestride::inline cli {
namespace {

constexpr std::size_t stack_lines_shown = 60;

}  // namespace

MpiReport JobOutputs::report_of(const WatchedJob& job, CallSites& places, const JobStacks* stacks) const {
  MpiReport report = make_mpi_report(job.view(), job.started(), places);
  for (const Reported& reported : job.reported()) {
    const Finding& finding = reported.finding;
    report.findings.push_back({name(finding.fault), headline(finding, job.view(), stacks), advice(finding, job.view()),
                               finding.since, reported.found, reported.ended, finding.culprits,
                               evidence(finding, job.view())});
  }
  return report;
}

std::string JobOutputs::path_of(const WatchedJob& job, const char* ending) const {
  return (options_.folder.empty() ? "" : options_.folder + "/") + "bestride-" + job.name() + ending;
}

void JobOutputs::write(const std::string& path, const std::string& text) {
  if (const auto written = replace_file(path, text); !written && failed_.insert(path).second)
    std::fprintf(stderr, "bestride: %s; name another folder with --verdict-folder\n", written.error().text.c_str());
}

void JobOutputs::write_metrics(const WatchedJob& job, const std::string& text) {
  if (options_.metrics.empty()) return write(path_of(job, ".prom"), text);
  if (const auto written = replace_file(options_.metrics, text); !written && failed_.insert(options_.metrics).second)
    std::fprintf(stderr, "bestride: %s; name another file with --metrics\n", written.error().text.c_str());
}

void JobOutputs::refresh(const WatchedJob& job, double seconds) {
  if ((!options_.report && options_.metrics.empty()) || seconds - refreshed_[job.name()] < options_.metrics_period)
    return;
  refreshed_[job.name()] = seconds;
  CallSites places;
  write_metrics(job, mpi_metrics(report_of(job, places, nullptr)));
}

void JobOutputs::finish(const WatchedJob& job, int exit_code, const JobStacks* stacks) {
  if (!options_.report && options_.metrics.empty()) return;
  CallSites places;
  MpiReport report = report_of(job, places, stacks);
  report.launcher_exit_code = exit_code;
  write_metrics(job, mpi_metrics(report));
  if (!options_.report) return;
  std::fputs(mpi_report_text(report).c_str(), stderr);
  write(path_of(job, ".report.json"), mpi_report_json(report) + "\n");
  write(path_of(job, ".report.html"),
        mpi_page(job.view(), report, stacks ? stack_lines(*stacks, stack_lines_shown) : std::vector<std::string>{}));
  write(path_of(job, ".trace.json"), chrome_trace(job.view(), report, places));
  if (failed_.empty())
    std::fprintf(stderr, "files: %s.{json,html}, .trace.json, %s\n", path_of(job, ".report").c_str(),
                 options_.metrics.empty() ? ".prom" : options_.metrics.c_str());
}

}  // namespace bestride::inline cli
