// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors of ours, for what can go no other way: device memory in a call that MPI can't be given in its place, or bytes that could not be
// brought in or out. Each has an error code of its own, whose MPI_Error_string names the remedy; the cause goes to stderr, once.
#include <mpi.h>

#include <cstdint>
#include <string>

namespace bestride {

enum class Trouble : std::uint8_t {
  refused,  ///< a one-sided call, a file, a partitioned message
  unknown,  ///< a datatype of which it can't be told what it touches
  memory,   ///< no host memory to take the bytes to
  copy,     ///< the driver could not copy them
};
inline constexpr int trouble_count = 4;

/// The error code; made at the first call. MPI_ERR_BUFFER, MPI_ERR_TYPE, MPI_ERR_NO_MEM or MPI_ERR_OTHER is its class.
int code_of(Trouble trouble) noexcept;

/// Says what went wrong (once for each kind), calls the error handler and returns the code: what the MPI call is to return.
int raise_on(MPI_Comm comm, Trouble trouble, const std::string& cause) noexcept;
int raise_on_window(MPI_Win window, Trouble trouble, const std::string& cause) noexcept;
int raise_on_file(MPI_File file, Trouble trouble, const std::string& cause) noexcept;

}  // namespace bestride
