// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command of a job behind the options of a subcommand: bestride run --report mpiexec -n 4 ./program.
#include <string>
#include <string_view>
#include <vector>

namespace bestride::inline cli {

/// If words[0] is `subcommand`: takes the job's command out of `words` and returns it. It begins after "--", or at the
/// first word that is neither an option nor the value of one of `with_value`.
std::vector<std::string> take_job(std::vector<std::string>& words, std::string_view subcommand,
                                  const std::vector<std::string_view>& with_value);

}  // namespace bestride::inline cli
