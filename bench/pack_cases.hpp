// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layouts for the kernel benchmarks: vectors, halo faces, arrays of structs, nested layouts, random lists, and the
// access patterns of DDTBench (Schneider, Gerstenberger, Hoefler, EuroMPI'12), written with the layout algebra.
#include <functional>
#include <string>
#include <vector>

#include "datatype/build.hpp"

namespace bestride::bench {

struct Case {
  std::string name;
  std::function<Placed()> build;
};

/// All cases, in ascending size within a kind.
std::vector<Case> cases();

}  // namespace bestride::bench
