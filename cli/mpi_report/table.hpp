// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines that the texts of reports of MPI time have in common.
#include <string>
#include <vector>

#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {

/// A line of a table with at most 11 columns: two of text, left-aligned, then seven of numbers, right-aligned, one of
/// text and one of a number.
std::string table_row(const std::vector<std::string>& cells);
/// "3 ranks", "1 rank".
std::string plural(std::size_t number, const std::string& word);
/// "MPI time of job hydra-4700: 4 ranks on node1, 12.3 s, solver\n"
std::string report_heading(const MpiReport& report);

}  // namespace bestride::inline cli
