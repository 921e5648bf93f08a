// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a set of measurements whole, so that a prediction never meets a hole: rules in docs/profile.md.
#include "perfmodel/profile.hpp"

namespace bestride {

/// Points a (lane, class) needs in its dense grids of `broken` and `kernel` to be used at all.
inline constexpr int least_points = 6;

/// `fallback` must be complete. Afterwards no point of `measured` is NaN.
void complete(Measurements* measured, const Measurements& fallback) noexcept;

/// Fills the lanes of Distance::network from those of Distance::node, for profiles measured on one host. The wire is taken to
/// be slow (25 Gbit/s, 2 us) and MPI's engines to overlap with it perfectly, our kernels not at all: both favour `forward`.
void derive_network(Measurements* measured) noexcept;

}  // namespace bestride
