// SPDX-License-Identifier: Apache-2.0
#pragma once
// The progress thread advances nonblocking collectives while no MPI call does: while the application waits inside the
// MPI library (a window, a file, a collective of another communicator) or runs outside of MPI. Without it, other ranks
// that wait for this one's part might wait forever. So nonblocking collectives go through the hierarchy or through
// shared memory only if every rank has the thread.
//
// For the hierarchy it needs MPI_THREAD_MULTIPLE, which MPI_Init requests if collectives may go through one; the
// application is told the level that it asked for. Without that level the thread calls no MPI function, and advances
// only what goes through shared memory. With BESTRIDE_PROGRESS=auto the thread sleeps while MPI calls make progress.
// Otherwise it polls for 10 us in every 200 us, which takes 5 % of a core from a computing application. With
// BESTRIDE_PROGRESS=thread it polls all the time.
//
// Alternatives considered: replacing each call that may wait by a loop of tests, which needs a nonblocking form of each
// (windows and files have none, and all members of a collective must take the same form); completing all that is
// pending before such a call, which may wait for a member that first needs this call.

namespace bestride::inline interpose {

/// True if this process must request MPI_THREAD_MULTIPLE. Called before MPI_Init.
bool wants_thread_multiple() noexcept;

enum class ProgressThread {
  none,          ///< not wanted (BESTRIDE_PROGRESS=calls), or it could not be created
  moves_memory,  ///< the library has not granted MPI_THREAD_MULTIPLE, so it calls no MPI function
  calls_mpi,
};
/// Starts the thread. `must_call_mpi`: it is started only if it may. If there is none, this is reported, as a warning
/// if the user asked for it. Called once, after MPI_Init.
ProgressThread start_progress_thread(bool must_call_mpi) noexcept;
/// Called when there is something to advance. Any thread.
void wake_progress_thread() noexcept;
/// When it returns, the thread is in no MPI call and will make none; it still advances what goes through shared memory.
/// Called before MPI_Finalize or the last MPI_Session_finalize.
void keep_progress_thread_out_of_mpi() noexcept;
/// When it returns, there is no thread. Called by the thread that called the function above.
void end_progress_thread() noexcept;

}  // namespace bestride::inline interpose
