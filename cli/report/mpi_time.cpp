// SPDX-License-Identifier: Apache-2.0
#include "cli/report/mpi_time.hpp"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/input_file.hpp"
#include "cli/common/command.hpp"
#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {
namespace {

/// "" if it can't be read.
std::string content_of(const std::string& path) {
  const Result<FileText> text = read_file_text(path, most_report_bytes);
  return text ? std::string(text->begin(), text->end()) : "";
}

bool is_mpi_report(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("format", nlohmann::json()) == mpi_report_format;
}

MpiReport parsed(const std::string& path, const std::string& text) {
  auto report = parse_mpi_report(text);
  if (!report) fail("'" + path + "' can't be used: " + report.error().text);
  return std::move(*report);
}

}  // namespace

bool print_mpi_reports(const std::vector<std::string>& paths) {
  std::vector<std::string> texts;
  texts.reserve(paths.size());
  for (const std::string& path : paths) texts.push_back(content_of(path));
  const auto reports = static_cast<std::size_t>(std::count_if(texts.begin(), texts.end(), is_mpi_report));
  if (reports == 0) return false;
  if (reports != paths.size())
    fail("some of the files are reports of MPI time and some are not; give one or two *.report.json files");
  if (paths.size() > 2) fail("reports of MPI time can't be added up; give one to print, or two to compare");
  const MpiReport first = parsed(paths[0], texts[0]);
  const std::string text =
      paths.size() == 1 ? mpi_report_text(first) : mpi_report_comparison(first, parsed(paths[1], texts[1]));
  std::fputs(text.c_str(), stdout);
  return true;
}

}  // namespace bestride::inline cli
