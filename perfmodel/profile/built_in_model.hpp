// SPDX-License-Identifier: Apache-2.0
#pragma once
// The curves for machines without calibration: a small analytic model of MPICH 4's engine and of our kernels, and the
// region where their difference was clear on all measured machines. Outside the region `forward` is made the cheapest.
// docs/decisions/built_in_profile.md has the figures and their sources.
//
// Evaluated during the build (built_in_generator.cpp): it takes 5 ms, and a constant is shared by all ranks of a host.
#include "perfmodel/profile/profile.hpp"

namespace bestride::inline perfmodel {

/// `curves`: unmeasured; complete afterwards.
void fill_built_in(Measurements* curves) noexcept;
/// The result, in a file that the build generates.
extern const Measurements built_in_curves;

}  // namespace bestride::inline perfmodel
