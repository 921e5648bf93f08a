// SPDX-License-Identifier: Apache-2.0
#pragma once
// Completes a set of measurements, so that a prediction never needs a missing point. docs/profile.md has the rules.
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// Fills the missing points of `measured`, so that none is NaN. `fallback`: a complete set, used where too few points
/// were measured.
void complete(Measurements* measured, const Measurements& fallback) noexcept;

/// Fills the call classes of Distance::network from those of Distance::node, for profiles measured on one host. It
/// assumes a slow network (25 Gbit/s, 2 us), that MPI's engines overlap with it completely, and that our kernels do not
/// overlap; both assumptions favor `forward`.
void derive_network(Measurements* measured) noexcept;

}  // namespace bestride::inline perfmodel
