// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs one case: fill, exchange and check, repeated as the options say.
#include <string>
#include <vector>

#include "grid.hpp"

namespace halo3d {

/// Identical on every rank. Times are in seconds; the time of a phase is that of the slowest rank.
struct CaseResult {
  Triple grid{};
  int ranks = 0;
  int exchanges = 0;               ///< measured exchanges and warm-up
  std::vector<double> exchange_s;  ///< one per measured exchange
  double setup_s = 0;              ///< datatypes, requests, topology
  double update_s = 0;             ///< all measured iterations together; the same for the next two
  double exchanging_s = 0;
  double check_s = 0;
  int messages = 0;          ///< sent by the busiest rank in one exchange
  long long bytes_sent = 0;  ///< by the busiest rank in one exchange
  long long halo_checked = 0;
  long long other_checked = 0;
  long long wrong = 0;
  std::string first_wrong;  ///< on this rank

  double median_s() const;
  double minimum_s() const;
};

/// Collective over the grid. `options` must have passed validate().
CaseResult run_case(const Options& options, const Grid& grid);

}  // namespace halo3d
