// SPDX-License-Identifier: Apache-2.0
#include "cli/mpi_report/page.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/mpi_report/trace.hpp"
#include "telemetry/waits/call_kind.hpp"

namespace bestride::inline cli {
namespace {

constexpr char page_template[] =
#include "page_template.inc"
    ;
constexpr std::string_view data_mark = "@DATA@";
constexpr std::size_t most_calls = 20000;

/// The colors of the page.
const char* category(const CallSnapshot& call) {
  if (call.ordinal != 0) return "collective";
  switch (telemetry::kind_of(call.function, false)) {
    case CallKind::send: return "send";
    case CallKind::receive: return "receive";
    case CallKind::wait_all:
    case CallKind::wait_any: return "wait";
    case CallKind::exchange: return "send";
    default: return "other";
  }
}

nlohmann::json timeline_json(const JobView& view) {
  const std::size_t ranks = std::max<std::size_t>(1, view.job.ranks.size());
  const std::vector<TimelineCall> calls = timeline(view, std::clamp<std::size_t>(most_calls / ranks, 16, 400));
  nlohmann::json functions = nlohmann::json::array(), kinds = functions, rows = functions;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  double begin = calls.empty() ? 0 : calls[0].begin;
  for (const TimelineCall& call : calls) begin = std::min(begin, call.begin);
  const RankSnapshot* last = nullptr;
  for (const TimelineCall& call : calls) {
    if (call.rank != last) rows.push_back({{"rank", call.rank->world_rank}, {"calls", nlohmann::json::array()}});
    last = call.rank;
    const std::string name = function_name(call.call->function), kind = category(*call.call);
    const auto [at, is_new] = known.try_emplace({name, kind}, known.size());
    if (is_new) functions.push_back(name), kinds.push_back(kind);
    const auto tenths = [](double seconds) { return std::round(seconds * 1e7) / 10; };  // of a microsecond
    nlohmann::json entry = {at->second, tenths(call.begin - begin), tenths(call.end - call.begin)};
    if (call.call->left == 0) entry.push_back(1);
    rows.back()["calls"].push_back(std::move(entry));
  }
  return {{"functions", functions}, {"kinds", kinds}, {"ranks", rows}};
}

/// "</script>" and "<!--" would end the element that holds the data.
std::string without_tags(const std::string& json) {
  std::string result;
  result.reserve(json.size());
  for (const char c : json)
    if (c == '<')
      result += "\\u003c";
    else
      result += c;
  return result;
}

}  // namespace

std::string mpi_page(const JobView& view, const MpiReport& report, const std::vector<std::string>& stacks) {
  const nlohmann::json more = {{"timeline", timeline_json(view)}, {"stacks", stacks}};
  std::string data = more.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  data.insert(1, "\"report\":" + mpi_report_json(report) + ",");
  const std::string_view page = page_template;
  const std::size_t mark = page.find(data_mark);
  return std::string(page.substr(0, mark)) + without_tags(data) + std::string(page.substr(mark + data_mark.size()));
}

}  // namespace bestride::inline cli
