// SPDX-License-Identifier: Apache-2.0
#pragma once
// A report of MPI time as an OpenMetrics text, for a node exporter that reads text files.
#include <string>

#include "cli/mpi_report/mpi_report.hpp"

namespace bestride::inline cli {

/// The report as OpenMetrics text without timestamps, as the textfile collector asks for; ends with "# EOF". Its labels
/// are the functions and the classes of verdicts, so a job has about 100 series, whatever its size.
std::string mpi_metrics(const MpiReport& report);

}  // namespace bestride::inline cli
