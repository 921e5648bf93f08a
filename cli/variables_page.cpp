// SPDX-License-Identifier: Apache-2.0
#include "base/variables.hpp"
#include "cli/info.hpp"

namespace bestride {
namespace {

std::string type_text(const Variable& variable) {
  switch (variable.type) {
    case VariableType::flag: return "0 or 1";
    case VariableType::size: return "size";
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
      "<!-- Generated: bestride info --env --markdown > docs/variables.md. The table is base/variables_table.cpp. -->\n\n"
      "Everything has a default; none of these is needed. A value comes from the environment, else from the file `BESTRIDE_CONFIG`\n"
      "names, else from `~/.config/bestride/config`, else from `/etc/bestride/config`. A file has one `NAME=value` a line and `#`\n"
      "comments. Flags take 0, 1, on, off, yes, no, true, false; sizes take K, M and G for powers of 1024. A bad value is said on\n"
      "stderr and the default stands; an unknown `BESTRIDE_` name is answered with the nearest known one. `bestride info --env`\n"
      "prints each variable's value in effect and where it comes from.\n\n"
      "| variable | values | default | what it does |\n|---|---|---|---|\n";
  for (const Variable& variable : variables()) {
    const std::string fallback = *variable.default_value ? "`" + std::string(variable.default_value) + "`" : "";
    page += "| `" + std::string(variable.name) + "` | " + type_text(variable) + " | " + fallback + " | " + variable.help + " |\n";
  }
  return page;
}

}  // namespace bestride
