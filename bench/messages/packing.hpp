// SPDX-License-Identifier: Apache-2.0
#pragma once
// One case's send type through MPI_Pack and MPI_Unpack, on one rank, beside a memcpy of as many bytes.
#include "cases.hpp"
#include "pingpong.hpp"

namespace messages {

struct Packing {
  Timing pack, unpack;
};

/// Takes a little more than `seconds`; 0: checks the bytes and times nothing. contiguous_us is the memcpy's.
Packing measure_packing(const Case& chosen, double seconds);

}  // namespace messages
