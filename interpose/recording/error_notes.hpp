// SPDX-License-Identifier: Apache-2.0
#pragma once
// Notes each error that the MPI library reports before the library passes it to an error handler. The default handler
// ends the process, and the launcher then ends the others, so the order of ends does not tell whose error it was.
//
// The functions of MPICH that choose the handler are exported and are called through the library's own table of
// imports (4.0 to 5.0, and Intel MPI), where they are replaced. Alternative considered: an error handler on each
// communicator, which MPI_Comm_get_errhandler would show, and which new communicators inherit.

namespace bestride::inline interpose {

/// From now on errors are noted in the record. Does nothing if the library has no such function. Called once, after
/// recording has begun.
void note_mpi_errors() noexcept;

/// True if the calling thread has left an error handler, and the call that raised the error, by longjmp(): `frame`, of
/// a new call, is outside of it. The note is withdrawn then. Known only after note_mpi_errors().
bool has_left_error_handler(const void* frame) noexcept;

/// While it exists, an MPI function that this thread calls for a group returns its error without a call of an error
/// handler. False: that is not possible here.
class QuietGroupErrors {
 public:
  QuietGroupErrors() noexcept;
  ~QuietGroupErrors();
  QuietGroupErrors(const QuietGroupErrors&) = delete;
  QuietGroupErrors& operator=(const QuietGroupErrors&) = delete;
  explicit operator bool() const noexcept;
};

}  // namespace bestride::inline interpose
