// SPDX-License-Identifier: Apache-2.0
#pragma once
// BESTRIDE_PROGRESS=thread: a thread that carries nonblocking collectives on while the application computes. It takes MPI_THREAD_MULTIPLE, which
// is asked for in MPI_Init; where the library does not grant it, that is said and collectives are carried on from MPI calls as by default.

namespace bestride {

/// The user asks for it. From MPI_Init on.
bool wants_progress_thread() noexcept;
/// Once there is something to carry on. Starts it at the first call, if it is wanted and may be. Any thread.
void wake_progress_thread() noexcept;
/// At MPI_Finalize: it is in no MPI call any more when this returns.
void end_progress_thread() noexcept;

}  // namespace bestride
