// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.hpp"

namespace bestride {

/// Writes `text` into a temporary file beside `path`, which then takes its place, so that a reader sees the old content
/// or the new one, also after a crash of the system. Error: "can't write 'PATH': cause"; nothing is left behind. The
/// caller adds the remedy.
Result<bool> replace_file(const std::string& path, const std::string& text);

}  // namespace bestride
