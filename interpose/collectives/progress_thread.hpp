// SPDX-License-Identifier: Apache-2.0
#pragma once
// The progress thread advances nonblocking collectives while no MPI call does: while the application waits inside the
// MPI library (a window, a file, a collective of another communicator) or runs outside of MPI. Without it, other ranks
// that wait for this one's part might wait forever. So nonblocking collectives go through the hierarchy only if every
// rank has the thread.
//
// It needs MPI_THREAD_MULTIPLE, which MPI_Init requests if collectives may go through a hierarchy. The application is
// told the level that it asked for. With BESTRIDE_PROGRESS=auto the thread sleeps while MPI calls make progress.
// Otherwise it polls for 10 us in every 200 us, which takes 5 % of a core from a computing application. With
// BESTRIDE_PROGRESS=thread it polls all the time.
//
// Alternatives considered: replacing each call that may wait by a loop of tests, which needs a nonblocking form of each
// (windows and files have none, and all members of a collective must take the same form); completing all that is
// pending before such a call, which may wait for a member that first needs this call.

namespace bestride::inline interpose {

/// Before MPI_Init: true if this process must request MPI_THREAD_MULTIPLE.
bool wants_thread_multiple() noexcept;

/// Starts the thread. False if it is not wanted (BESTRIDE_PROGRESS=calls), if the library has not granted
/// MPI_THREAD_MULTIPLE, or if no thread can be created. The first two are reported if the user asked for the thread.
/// Called once, after MPI_Init.
bool start_progress_thread() noexcept;
/// Called when there is something to advance. Any thread.
void wake_progress_thread() noexcept;
/// Called at MPI_Finalize. When it returns, the thread is in no MPI call and will make none.
void end_progress_thread() noexcept;

}  // namespace bestride::inline interpose
