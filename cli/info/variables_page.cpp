// SPDX-License-Identifier: Apache-2.0
#include "base/variables.hpp"
#include "cli/info/info.hpp"

namespace bestride::inline cli {
namespace {

std::string type_text(const Variable& variable) {
  switch (variable.type) {
    case VariableType::flag: return "0 or 1";
    case VariableType::size: return "size";
    case VariableType::automatic_size: return "auto or size";
    case VariableType::text: return "text";
    case VariableType::choice: break;
  }
  std::string choices;
  for (const char* c = variable.choices; *c; ++c) choices += *c == '|' ? std::string(", ") : std::string(1, *c);
  return choices;
}

}  // namespace

std::string variables_page() {
  std::string page =
      "# Variables\n\n"
      "<!-- Generated: bestride info --env --markdown > docs/variables.md. The table is base/variables_table.cpp. "
      "-->\n\n"
      "Every variable has a default. A value comes from the environment, else from the file that `BESTRIDE_CONFIG` "
      "names, "
      "else from\n"
      "`~/.config/bestride/config`, else from `/etc/bestride/config`. A file has one `NAME=value` per line and "
      "comments "
      "after `#`.\n"
      "Flags take 0, 1, on, off, yes, no, true, false. Sizes take K, M and G for powers of 1024. If a value is "
      "invalid, "
      "the library\n"
      "reports it on stderr and uses the default. For an unknown `BESTRIDE_` name it prints the nearest known one.\n"
      "`BESTRIDE_DISABLE`, `BESTRIDE_LOG` and `BESTRIDE_CONFIG` are read from the environment only.\n"
      "`bestride info --env` prints the value of each variable and where it comes from.\n\n"
      "| variable | values | default | what it does |\n|---|---|---|---|\n";
  for (const Variable& variable : variables()) {
    if (variable.internal) continue;
    const std::string fallback = *variable.default_value ? "`" + std::string(variable.default_value) + "`" : "";
    page += "| `" + std::string(variable.name) + "` | " + type_text(variable) + " | " + fallback + " | " +
            variable.help + " |\n";
  }
  return page;
}

}  // namespace bestride::inline cli
