// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.hpp"
#include "model/distance.hpp"

namespace bestride::inline perfmodel {

/// Binds this process, rank 0 or 1 of a job of two ranks on one host, to one of two processors at this near distance;
/// both ranks choose the same pair. Called before MPI_Init. False: the processors that the job may use have no such
/// pair. An error says why the process can't be bound.
Result<bool> bind_at(Distance near);

}  // namespace bestride::inline perfmodel
