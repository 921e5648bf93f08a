// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes an exception that nobody catches in a Python program. Python then ends the rank; mpi4py calls MPI_Finalize on
// the way, which waits for the other ranks, and these wait for this one.
//
// CPython (3.8 or newer) reports such an exception to audit hooks as the event sys.excepthook, before it prints it:
// PEP 578. The hook asks the exception for its text and its frames, and changes nothing.
//
// It does not report SystemExit, by which sys.exit() ends a program, perhaps too early. So the functions that the
// interpreter calls for sys.exit() and for a new object of SystemExit are replaced by ones that note the frames first.
// Alternatives considered: the traceback when the interpreter ends, which CPython up to 3.11 does not let others see
// then; a trace function, which makes every call of the program slower.

namespace bestride::inline interpose {

/// Does nothing in a process without Python. Called once, after recording has begun.
void note_python_exceptions() noexcept;

}  // namespace bestride::inline interpose
