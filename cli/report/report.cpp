// SPDX-License-Identifier: Apache-2.0
#include "cli/report/report.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/input_file.hpp"
#include "cli/common/command.hpp"
#include "cli/report/mpi_time.hpp"
#include "telemetry/report/ledger.hpp"

namespace bestride::inline cli {
namespace {

using Json = nlohmann::json;

/// The value of a number; null, which the writer uses for values that JSON cannot represent, reads as 0.
double seconds_of(const Json& number) { return number.is_null() ? 0 : number.get<double>(); }

LedgerLine line_of(const Json& entry) {
  return {entry.at("call"),
          entry.at("layout"),
          entry.at("strategy"),
          entry.at("reason"),
          entry.at("calls"),
          entry.at("bytes"),
          seconds_of(entry.at("seconds")),
          seconds_of(entry.at("saved_seconds")),
          entry.contains("engine_seconds") ? seconds_of(entry.at("engine_seconds")) : 0};
}

/// Reports of older versions have no such entry.
CacheSums cache_of(const Json& json) {
  if (!json.contains("cache")) return {};
  const Json& sums = json.at("cache");
  return {sums.at("hits"),   sums.at("hit_bytes"), sums.at("deltas"), sums.at("delta_saved_bytes"),
          sums.at("misses"), sums.at("paused")};
}

Json read_report(const std::string& path) {
  if (std::filesystem::is_directory(path))
    fail("'" + path + "' is a directory; give the report in it: the file that BESTRIDE_REPORT_FILE names, else " +
         path + "/bestride-<job>.json");
  const Result<FileText> text = read_file_text(path, most_report_bytes);
  if (!text) fail("can't read '" + path + "': " + text.error().text + "; give the file BESTRIDE_REPORT=1 wrote");
  Json json = Json::parse(text->begin(), text->end(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || json.value("format", Json()) != "bestride-report")
    fail("'" + path +
         "' is not a bestride report; give bestride-<job>.json of BESTRIDE_REPORT=1 or bestride-<job>.report.json of "
         "--report");
  if (json.value("version", Json()) != 1)
    fail("'" + path + "' is a report of format " + json.value("version", Json()).dump() +
         ", this command reads 1; use the bestride that wrote it");
  return json;
}

/// The rank that wrote a part, which is the number at the end of its name: rank 0 adds none.
std::string writer_of(const std::string& path) {
  const std::size_t dot = path.find_last_not_of("0123456789");
  return dot != std::string::npos && path[dot] == '.' ? path.substr(dot + 1) : "";
}

/// A rank writes one part of a job's report. The names of the parts may be different otherwise: without a batch system,
/// each rank uses its own process id.
void check_parts(const std::vector<std::string>& paths) {
  std::map<std::string, std::string> parts;
  for (const std::string& path : paths) {
    const auto [before, is_first] = parts.emplace(writer_of(path), path);
    if (is_first) continue;
    if (before->second == path) fail("'" + path + "' is given twice; give the parts of one job's report, each once");
    fail("'" + before->second + "' and '" + path +
         "' are reports of two jobs, which can't be added up; to compare two jobs, give the *.report.json files that "
         "'bestride run --report' wrote of them");
  }
}

/// Prints the sum of the parts of one job's report.
void report(const std::vector<std::string>& paths) {
  ReportHeader all;
  Ledger ledger;
  for (const std::string& path : paths) {
    const Json json = read_report(path);
    try {
      const ReportHeader header{json.at("mpi_library"), json.at("profile"), json.at("ranks"),
                                seconds_of(json.at("job_seconds"))};
      all = {header.mpi_library, header.profile, all.ranks + header.ranks,
             std::max(all.job_seconds, header.job_seconds)};
      for (const Json& entry : json.at("lines")) ledger.post(line_of(entry));
      ledger.post(cache_of(json));
    } catch (const Json::exception&) {
      fail("'" + path + "' is damaged: a field is missing or of another type; run the job again");
    }
  }
  check_parts(paths);
  std::fputs(report_text(all, ledger.lines(), ledger.cache()).c_str(), stdout);
}

}  // namespace

void add_report(CLI::App& app) {
  const auto paths = std::make_shared<std::vector<std::string>>();
  CLI::App* const command = app.add_subcommand("report", "print a JSON report; compare two reports of MPI time");
  command
      ->add_option("file", *paths,
                   "report that a job wrote, or its parts; or two *.report.json files to compare two jobs")
      ->required()
      ->type_name("FILE");
  command->callback([paths] {
    if (!print_mpi_reports(*paths)) report(*paths);
  });
}

}  // namespace bestride::inline cli
