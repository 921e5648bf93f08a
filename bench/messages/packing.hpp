// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI_Pack and MPI_Unpack of one case's send type on one rank, compared with a memcpy of the same number of bytes.
#include "cases.hpp"
#include "pingpong.hpp"

namespace messages {

struct Packing {
  Timing pack, unpack;
};

/// Takes a little more than `seconds`; 0: only checks the bytes. contiguous_us is the time of the memcpy.
Packing measure_packing(const Case& chosen, double seconds);

}  // namespace messages
