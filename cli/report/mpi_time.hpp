// SPDX-License-Identifier: Apache-2.0
#pragma once
// `bestride report` with reports of MPI time.
#include <cstddef>
#include <string>
#include <vector>

namespace bestride::inline cli {

/// The most bytes of a report of any kind that are read. A report of what was done with calls has about 1 KiB for each
/// rank.
inline constexpr std::size_t most_report_bytes = std::size_t{1} << 30;

/// Prints one report of MPI time, or compares two. Returns false if none of the files is such a report; ends the
/// command with a message if they can't be read or only some are.
bool print_mpi_reports(const std::vector<std::string>& paths);

}  // namespace bestride::inline cli
