// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lets C++ exceptions of the application pass through the backend: thrown by its error handlers, caught by the caller
// of the MPI function. Thread cancellation uses the same mechanism.
//
// The backend has its own copy of the unwinder (it depends only on libc). Frames with cleanup code call that copy while
// the application's unwinder is active, and the copy aborts unless it has been used before. So it is used once, when
// the backend is opened. If an error handler leaves by longjmp() instead, the memory that the call has allocated is
// leaked; nothing else is affected.

namespace bestride::inline interpose {

void prepare_unwinder() noexcept;

}  // namespace bestride::inline interpose
