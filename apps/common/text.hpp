// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text of reports. Thread-safe.
#include <string>

namespace apps {

/// As printf. At most 511 characters; the rest is cut off.
std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

/// Writes `text` to the file, or to standard output if `path` is "-". False if it could not be written in full.
bool write_text(const std::string& path, const std::string& text);

}  // namespace apps
