// SPDX-License-Identifier: Apache-2.0
#include "cli/common/job_words.hpp"

#include <algorithm>

namespace bestride::inline cli {

std::vector<std::string> take_job(std::vector<std::string>& words, std::string_view subcommand,
                                  const std::vector<std::string_view>& with_value) {
  if (words.empty() || words[0] != subcommand) return {};
  auto word = words.begin() + 1;
  while (word < words.end() && word->starts_with('-') && *word != "--")
    word += std::find(with_value.begin(), with_value.end(), *word) != with_value.end() ? 2 : 1;
  word = std::min(word, words.end());
  std::vector<std::string> job(word != words.end() && *word == "--" ? word + 1 : word, words.end());
  words.erase(word, words.end());
  return job;
}

}  // namespace bestride::inline cli
