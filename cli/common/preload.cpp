// SPDX-License-Identifier: Apache-2.0
#include "cli/common/preload.hpp"

#include <algorithm>
#include <cstdlib>

#include "cli/common/shell.hpp"

namespace bestride::inline cli {

std::vector<std::string> preloaded() {
  const char* const before = std::getenv("LD_PRELOAD");
  const std::string list = before ? before : "";
  std::vector<std::string> libraries;
  for (std::size_t from = 0; from < list.size();) {
    const std::size_t end = std::min(list.find_first_of(" :", from), list.size());
    if (end > from) libraries.push_back(list.substr(from, end - from));
    from = end + 1;
  }
  return libraries;
}

std::string preload_with(const std::string& library) {
  const char* const before = std::getenv("LD_PRELOAD");
  if (!before || !*before) return library;
  const std::vector<std::string> all = preloaded();
  if (std::find(all.begin(), all.end(), library) != all.end()) return before;
  return library + ":" + before;
}

std::string preload_without_bestride() {
  std::string left;
  for (const std::string& library : preloaded())
    if (base_name(library) != "libbestride.so") left += (left.empty() ? "" : ":") + library;
  return left;
}

}  // namespace bestride::inline cli
