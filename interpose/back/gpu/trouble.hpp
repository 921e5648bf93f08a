// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors of ours that name a remedy: device memory in calls that can't be made with something else in its place. Each has an error code
// of its own, whose MPI_Error_string is that text; it goes to stderr, too, once. What could not be moved is raise.hpp's.
#include <mpi.h>

#include <cstdint>
#include <string>

namespace bestride {

enum class Trouble : std::uint8_t {
  refused,  ///< a one-sided call, a file, a partitioned message
  unknown,  ///< a datatype of which it can't be told what it touches
};
inline constexpr int trouble_count = 2;

/// The error code; made at the first call. Its class is one of ours, because MPICH 4.0.2 has garbage for the text of a code that is added to
/// a class of MPI's. Where it can't be made, MPI_ERR_OTHER.
int code_of(Trouble trouble) noexcept;

/// Says what went wrong (once for each kind), calls the error handler and returns the code: what the MPI call is to return.
int raise_on(MPI_Comm comm, Trouble trouble, const std::string& cause) noexcept;
int raise_on_window(MPI_Win window, Trouble trouble, const std::string& cause) noexcept;
int raise_on_file(MPI_File file, Trouble trouble, const std::string& cause) noexcept;

}  // namespace bestride
