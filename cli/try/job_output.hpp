// SPDX-License-Identifier: Apache-2.0
#pragma once
// What runs of one program printed, compared.
#include <string>
#include <vector>

namespace bestride::inline cli {

enum class OutputComparison {
  same,              ///< all runs printed the same lines, in any order: ranks print when they come to it
  same_but_numbers,  ///< runs of the first kind differ from each other in numbers, and those of the second kind in no
                     ///< more
  varies,            ///< runs of the first kind differ from each other in more than numbers: nothing can be said
  differs,  ///< all runs of the first kind printed the same, or the same but for numbers; one of the second did not
};

struct OutputDifference {
  OutputComparison kind = OutputComparison::same;
  int run = -1;               ///< of the second kind, if it differs
  std::string missing, more;  ///< the first line that it lacks, and that it has in addition; empty: there is none
};

/// One string for each run. There is at least one of each kind.
OutputDifference compare_outputs(const std::vector<std::string>& first, const std::vector<std::string>& second);

}  // namespace bestride::inline cli
