// SPDX-License-Identifier: Apache-2.0
#pragma once
// The preload library in the measuring program.
#include "perfmodel/calibrate/common/options.hpp"

namespace bestride::inline perfmodel {

/// Restarts the program with the library in LD_PRELOAD. Called on every host before MPI_Init, because launchers differ
/// in which environment variables they pass on. Returns false, after printing the event `error`, if the library is
/// missing on this host: the other ranks assume that all have it. Returns true if the restart is not possible; then
/// there is only one variant to measure.
bool restart_preloaded(const MeasureOptions& options, int argc, char** argv);

/// True if the MPI_ names refer to the preload library.
bool preloaded();

}  // namespace bestride::inline perfmodel
