// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sets of ranks as text.
#include <cstdint>
#include <string>
#include <vector>

namespace bestride::inline cli {

/// Ascending ranks: "0-2,4,6-7"; after `most` ranges "0-2,4,...".
std::string rank_list(const std::vector<std::int32_t>& ranks, std::size_t most = 8);
/// "rank 3", "ranks 0-2,4".
std::string ranks_text(const std::vector<std::int32_t>& ranks, std::size_t most = 8);
/// "0 -> 1 -> 0": each rank waits for the next one. Not empty.
std::string cycle_text(const std::vector<std::int32_t>& cycle);

}  // namespace bestride::inline cli
