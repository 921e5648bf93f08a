// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace bestride::inline cli {

/// The absolute path of a machine profile that the user names. Ends the command with a message if it can't be used.
std::string named_profile(const std::string& path);

}  // namespace bestride::inline cli
