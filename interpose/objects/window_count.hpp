// SPDX-License-Identifier: Apache-2.0
#pragma once
// The number of windows of this process.
//
// While a rank has a window, others may wait for its MPI library to carry out their one-sided operations, at any time.
#include <atomic>

namespace bestride::inline interpose {

inline constinit std::atomic<int> window_count{0};

}  // namespace bestride::inline interpose
