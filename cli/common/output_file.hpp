// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace bestride::inline cli {

/// Why a file can't be opened for writing, which may also be a device; found out without creating it. "": it can, as
/// far as can be told.
std::string why_not_opened(const std::string& path);

}  // namespace bestride::inline cli
