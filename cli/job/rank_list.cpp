// SPDX-License-Identifier: Apache-2.0
#include "cli/job/rank_list.hpp"

namespace bestride::inline cli {

std::string rank_list(const std::vector<std::int32_t>& ranks, std::size_t most) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (ranges++) text += ",";
    if (ranges > most) return text + "...";
    text += std::to_string(ranks[i]);
    if (end - i > 1) text += (end - i == 2 ? "," : "-") + std::to_string(ranks[end - 1]);
    i = end;
  }
  return text;
}

std::string ranks_text(const std::vector<std::int32_t>& ranks, std::size_t most) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + rank_list(ranks, most);
}

std::string cycle_text(const std::vector<std::int32_t>& cycle) {
  std::string text;
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    if (i == 12 && cycle.size() > 14) {
      text += "... (" + std::to_string(cycle.size()) + " ranks) -> ";
      break;
    }
    text += std::to_string(cycle[i]) + " -> ";
  }
  return text + std::to_string(cycle[0]);
}

}  // namespace bestride::inline cli
