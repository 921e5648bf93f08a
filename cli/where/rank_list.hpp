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

}  // namespace bestride::inline cli
