// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text from other programs that is safe to print: names of programs, hosts, communicators, files.
#include <string>

namespace bestride::inline telemetry {

/// Replaces each character by '?' that controls a terminal or is not seen, as those that change the direction of the
/// text after them: control characters except `kept`, line and paragraph separators, and format characters (category
/// Cf of Unicode 15). `text` is UTF-8; other bytes stay, unless a terminal may take them for control characters.
std::string printable(const std::string& text, char kept = '?');

}  // namespace bestride::inline telemetry
