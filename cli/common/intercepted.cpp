// SPDX-License-Identifier: Apache-2.0
#include "cli/common/intercepted.hpp"

#include <strings.h>

#include <iterator>
#include <string_view>

namespace bestride::inline cli {
namespace {

struct Intercepted {
  std::string_view name;
  const char* handling;
};
constexpr Intercepted table[] = {
#include "intercepted_functions.inc"
};

}  // namespace

std::string handling_of(const std::string& name) {
  const std::string_view wanted = name.starts_with("PMPI_") ? std::string_view(name).substr(1) : name;
  for (const Intercepted& function : table)
    if (function.name.size() == wanted.size() && ::strncasecmp(function.name.data(), wanted.data(), wanted.size()) == 0)
      return function.handling;
  return "";
}

}  // namespace bestride::inline cli
