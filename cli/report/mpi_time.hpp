// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride report` with reports of MPI time.
#include <string>
#include <vector>

namespace bestride::inline cli {

/// Prints one report of MPI time, or compares two. Returns false if none of the files is such a report; ends the
/// command with a message if they can't be read or only some are.
bool print_mpi_reports(const std::vector<std::string>& paths);

}  // namespace bestride::inline cli
