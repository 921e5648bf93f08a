// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host as the library sees it: its processors, and the NICs that local ranks may take.
#include <string>

#include "base/result.hpp"
#include "model/rails.hpp"

namespace bestride {

/// "64 cores (128 hardware threads) in 2 NUMA domains, from /sys"; what is not known is left out.
std::string processors_text();
/// "eth0 25000 Mbit/s, eth1 25000 Mbit/s": the hardware that is up; "no NIC is up" if none is.
std::string nics_text();
struct RailsHere {
  Rails rails;              ///< empty: off
  bool by_profile = false;  ///< nobody named them
};
/// What BESTRIDE_RAILS and the profile do on this host in a job of several; an error if the rails can't be had.
Result<RailsHere> rails_here();
/// "off", "eth0 eth1", "eth0 eth1 (of the profile)".
std::string rails_text(const RailsHere& here);

}  // namespace bestride
