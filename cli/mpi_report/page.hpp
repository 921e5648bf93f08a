// SPDX-License-Identifier: Apache-2.0
#pragma once
// A report of MPI time as one HTML page that needs nothing else: page.html with the data in it.
//
// The data is JSON in a script element that is not executed; the page's script writes it as text only, never as HTML,
// so that a name in the job can't become part of the page. Alternative considered: static HTML and SVG, several times
// as large at 1024 ranks.
#include <string>
#include <vector>

#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {

/// `stacks`: lines of a stack tree, may be empty. Of the timeline at most about 20000 calls are shown.
std::string mpi_page(const JobView& view, const MpiReport& report, const std::vector<std::string>& stacks);

}  // namespace bestride::inline cli
