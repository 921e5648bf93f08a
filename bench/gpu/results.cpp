// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/results.hpp"

#include <algorithm>
#include <cstdio>

#include "apps/common/text.hpp"

namespace gpu {
namespace {

using apps::format;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

void Results::add(Row row) { rows_.push_back(std::move(row)); }
void Results::leave_out(const std::string& what, const std::string& why) { left_out_.emplace_back(what, why); }

bool Results::all_right() const {
  return std::all_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.right; });
}

bool Results::met(const Row& row) const {
  return row.wanted == 0 || (row.at_least ? row.figure >= row.wanted : row.figure <= row.wanted);
}

std::string Results::table(bool everything) const {
  std::string text =
      format("%s, capability %d.%d, driver for CUDA %d.%d\n", gpu_.name().c_str(), gpu_.capability() / 10,
             gpu_.capability() % 10, gpu_.driver_version() / 1000, gpu_.driver_version() % 1000 / 10);
  if (gpu_.stand_in()) text += "This is the stand-in driver: its figures are no performance and are not shown.\n";
  text += format("%-38s %-44s %8s  %s\n", "goal", everything ? "case" : "worst case", "figure", "wanted");
  std::vector<std::string> seen;
  for (const Row& first : rows_) {
    if (std::find(seen.begin(), seen.end(), first.goal) != seen.end()) continue;
    seen.push_back(first.goal);
    std::vector<const Row*> rows;
    for (const Row& row : rows_)
      if (row.goal == first.goal) rows.push_back(&row);
    const auto worse = [](const Row* a, const Row* b) {
      return a->at_least ? a->figure < b->figure : a->figure > b->figure;
    };
    const auto missed = std::count_if(rows.begin(), rows.end(), [&](const Row* row) { return !met(*row); });
    const auto total = rows.size();
    if (!everything) rows = {*std::min_element(rows.begin(), rows.end(), worse)};
    for (const Row* row : rows) {
      std::string figure = "-", wanted;
      if (!gpu_.stand_in()) figure = format("%.3f", row->figure);
      if (row->wanted != 0) wanted = format("%s %.2f", row->at_least ? ">=" : "<=", row->wanted);
      if (row->wanted != 0 && !gpu_.stand_in()) wanted += met(*row) ? " met" : " MISSED";
      if (!everything && missed > 0 && !gpu_.stand_in()) wanted += format(" (%zu of %zu)", std::size_t(missed), total);
      text += format("%-38s %-44s %8s  %s%s\n", row->goal.c_str(), row->name.c_str(), figure.c_str(), wanted.c_str(),
                     row->right ? "" : "  WRONG BYTES");
    }
  }
  const auto checked = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return row.checked; });
  const auto wrong = std::count_if(rows_.begin(), rows_.end(), [](const Row& row) { return !row.right; });
  text += format("%zu cases, the bytes of %zu compared, %zu wrong\n", rows_.size(), std::size_t(checked),
                 std::size_t(wrong));
  for (const auto& [what, why] : left_out_) text += "left out: " + what + ": " + why + "\n";
  return text;
}

std::string Results::json() const {
  std::string text = "{\n";
  text += format("  \"gpu\": %s, \"capability\": %d, \"multiprocessors\": %d, \"driver\": %d, \"stand_in\": %s,\n",
                 quoted(gpu_.name()).c_str(), gpu_.capability(), gpu_.multiprocessors(), gpu_.driver_version(),
                 gpu_.stand_in() ? "true" : "false");
  text += "  \"left_out\": [";
  for (std::size_t i = 0; i < left_out_.size(); ++i)
    text += (i ? ", " : "") + quoted(left_out_[i].first + ": " + left_out_[i].second);
  text += "],\n  \"rows\": [\n";
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    text += "    {\"goal\": " + quoted(row.goal) + ", \"case\": " + quoted(row.name);
    if (gpu_.stand_in()) {
      text += ", \"figure\": null";
    } else {
      text += format(", \"figure\": %.5g", row.figure);
      for (const auto& [name, value] : row.raw) text += format(", %s: %.6g", quoted(name).c_str(), value);
    }
    if (row.wanted != 0) text += format(", \"%s\": %.3g", row.at_least ? "at_least" : "at_most", row.wanted);
    text += format(", \"checked\": %s, \"right\": %s}%s\n", row.checked ? "true" : "false",
                   row.right ? "true" : "false", i + 1 < rows_.size() ? "," : "");
  }
  return text + "  ]\n}\n";
}

}  // namespace gpu
