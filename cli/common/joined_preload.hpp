// SPDX-License-Identifier: Apache-2.0
#pragma once
// A job's command may set LD_PRELOAD for its ranks, or drop variables on the way to them. The library is then joined
// with what the command sets, so that both are loaded.
#include <string>
#include <vector>

#include "cli/common/launcher.hpp"

namespace bestride::inline cli {

/// Changes `command` so that the variables of `set`, among them LD_PRELOAD, reach the program of the job:
///   -genv LD_PRELOAD X, -env, -x LD_PRELOAD=X, --export=ALL,LD_PRELOAD=X, env LD_PRELOAD=X: X becomes LIBRARY:X
///   env -i: the variables are set behind it
///   -genvnone, -genvlist, -envnone, -envlist of Hydra's mpiexec: -genv for each variable
/// Returns one line for each place that can't be changed, with the remedy. Values with a libbestride.so are left as
/// they are.
std::vector<std::string> join_preload(std::vector<std::string>& command, const Environment& set);

}  // namespace bestride::inline cli
