// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bestride {

/// The candidate with the smallest edit distance (Levenshtein) from `name`; on a tie, the first one. "" if all
/// distances are above `max_edits`. For "did you mean".
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates, int max_edits);

}  // namespace bestride
