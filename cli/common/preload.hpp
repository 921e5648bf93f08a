// SPDX-License-Identifier: Apache-2.0
#pragma once
// The value of LD_PRELOAD for a job.
#include <string>
#include <vector>

namespace bestride::inline cli {

/// The libraries that this process's LD_PRELOAD names.
std::vector<std::string> preloaded();

/// This process's LD_PRELOAD with `library` in front, once.
std::string preload_with(const std::string& library);
/// This process's LD_PRELOAD without any libbestride.so; empty: nothing is left.
std::string preload_without_bestride();

}  // namespace bestride::inline cli
