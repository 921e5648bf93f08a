// SPDX-License-Identifier: Apache-2.0
#include "cli/job/dropped.hpp"

#include <cstdint>

#include "cli/job/rank_list.hpp"

namespace bestride::inline cli {
namespace {

struct DroppedKind {
  std::uint64_t RankSnapshot::*count;
  unsigned most;
  const char* entries;
};
constexpr DroppedKind dropped_kinds[] = {
    {&RankSnapshot::communicators_dropped, max_communicators, "communicators, windows and files"},
    {&RankSnapshot::requests_dropped, max_requests, "requests"},
    {&RankSnapshot::threads_dropped, max_threads, "threads"},
};

}  // namespace

std::vector<std::string> dropped_lines(const std::vector<RankSnapshot>& ranks) {
  std::vector<std::string> lines;
  for (const DroppedKind& kind : dropped_kinds) {
    std::vector<std::int32_t> numbers;
    for (const RankSnapshot& rank : ranks)
      if (rank.world_rank >= 0 && rank.*kind.count > 0) numbers.push_back(rank.world_rank);
    if (!numbers.empty())
      lines.push_back("more than " + std::to_string(kind.most) + " " + kind.entries + " at a time in " +
                      ranks_text(numbers) + ": the further ones are not recorded, so waits for them are not known");
  }
  return lines;
}

}  // namespace bestride::inline cli
