// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host as the library sees it: its processors, and the NICs that local ranks may use.
#include <string>

#include "base/result.hpp"
#include "model/rails.hpp"

namespace bestride::inline cli {

/// "64 cores (128 hardware threads) in 2 NUMA domains, from /sys"; unknown parts are omitted.
std::string processors_text();
/// "eth0 25000 Mbit/s, eth1 25000 Mbit/s": the hardware NICs that are up; "no NIC is up" if there are none.
std::string nics_text();
struct RailsHere {
  Rails rails;              ///< empty: off
  bool by_profile = false;  ///< chosen by the profile, not by the user
};
/// The effect of BESTRIDE_NICS and the profile on this host in a job with several hosts; an error if the rails are not
/// available.
Result<RailsHere> rails_here();
/// "off", "eth0 eth1", "eth0 eth1 (of the profile)".
std::string rails_text(const RailsHere& here);

}  // namespace bestride::inline cli
