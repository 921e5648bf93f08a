// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace bestride::inline interpose {

/// True if the error code is of a class of errors in arguments, which MPI libraries find before they communicate: other
/// ranks do not notice the call.
bool is_argument_error(int error) noexcept;

}  // namespace bestride::inline interpose
