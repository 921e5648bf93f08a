// SPDX-License-Identifier: Apache-2.0
#pragma once
// The Python frames of a process that crashes: nobody can read them afterwards.

namespace bestride::inline interpose {

/// Looks for the function by which CPython's faulthandler writes frames. CPython 3.13 and newer do not export it.
/// Called outside signal handlers.
void find_python_frames() noexcept;

/// Appends the Python frames of the calling thread to `file`, innermost first, as faulthandler does: lines of the form
/// `  File "solver.py", line 12 in load`. Nothing if the thread runs no Python code, or if the process is no Python
/// interpreter. Stops if the interpreter's data are damaged, so that reading them faults. For a signal handler, in one
/// thread at a time.
void write_python_frames(int file) noexcept;

}  // namespace bestride::inline interpose
