// SPDX-License-Identifier: Apache-2.0
#pragma once
// This host as the library sees it: its processors, and the NICs that local ranks may take.
#include <string>

#include "base/result.hpp"

namespace bestride {

/// "64 cores (128 hardware threads) in 2 NUMA domains, from /sys"; what is not known is left out.
std::string processors_text();
/// "eth0 25000 Mbit/s, eth1 25000 Mbit/s": the hardware that is up; "no NIC is up" if none is.
std::string nics_text();
/// What BESTRIDE_RAILS does on this host: "off", or the rails; an error if they can't be had.
Result<std::string> rails_text();

}  // namespace bestride
