// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes that this process ends by exit() or _exit(), with its code. It is recorded, because the launcher waits for this
// process: the watching process may look too late.

namespace bestride::inline interpose {

/// Notes calls of exit() from now on. `observed` (a watched job): also the place of a call before MPI_Finalize; and
/// calls of _exit() and _Exit() in the objects that are loaded now.
void note_exits(bool observed) noexcept;

}  // namespace bestride::inline interpose
