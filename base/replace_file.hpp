// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.hpp"

namespace bestride {

/// Writes `text` to a temporary file beside `path` and renames it to `path`. So a reader sees either the old or the new
/// content, even after a system crash. Error: "can't write 'PATH': cause"; the temporary file is removed. The caller
/// adds the remedy.
Result<bool> replace_file(const std::string& path, const std::string& text);

/// Why replace_file() would fail, found out with an empty temporary file; "": it would not, as far as can be told. Only
/// regular files are replaced.
std::string why_not_writable(const std::string& path);

}  // namespace bestride
