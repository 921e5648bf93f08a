// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes a crash of this process, and leaves its stack beside the record (telemetry/record/crash_file.hpp), before the
// signal's action ends the process.
//
// A handler is put in front of the default action, and of the actions of libraries that only report a crash (UCX,
// libgfortran). It puts that action back and lets the signal happen again, so the process ends as it would have. A
// program's own handler is never replaced: it may repair what the signal reports.

namespace bestride::inline interpose {

/// Notes SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT from now on. `record_path`: the path of this process's record.
/// Gives the calling thread an alternate signal stack if it has none, so that an overflow of its stack is noted, too.
/// Called when recording begins, and again when MPI is initialized, since the MPI library may have set handlers
/// meanwhile. Not thread-safe.
void note_crashes(const char* record_path) noexcept;
/// Notes that the process ends by exit() or _exit(), and leaves its stack, which contains the caller. Does nothing
/// before note_crashes(). For a signal handler, too.
void note_exit(int code) noexcept;
/// Notes a crash of a process that ends by abort() without a handler of SIGABRT: libgfortran restores the default
/// action before.
void note_abort() noexcept;

}  // namespace bestride::inline interpose
