// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the requests of ranks show about a finding, one line each.
#include <string>
#include <vector>

#include "cli/job/job_view.hpp"
#include "telemetry/detector/finding.hpp"

namespace bestride::inline cli {

/// The requests for which ranks wait and whose peer is a culprit: "rank 1 waits for a request: MPI_Irecv from rank 2,
/// tag 2, 156 KiB".
std::vector<std::string> open_requests(const telemetry::Finding& finding, const JobView& view);

/// The requests of a rank that an MPI error has ended in a call that completes requests, as MPI_Waitall: with the
/// places where they were begun, and the longer messages that their peers have sent. Empty for any other call.
std::vector<std::string> requests_of_failed_call(const RankSnapshot& rank, const JobView& view);

}  // namespace bestride::inline cli
