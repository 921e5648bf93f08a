// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/noted_error.hpp"

#include <cstddef>
#include <string_view>

#include "interpose/mpi/functions.hpp"
#include "telemetry/record/end_notes.hpp"

namespace bestride::inline interpose {

namespace {

bool observed = false;  ///< written once, before MPI_Init
thread_local constinit bool handled __attribute__((tls_model("initial-exec"))) = false;

}  // namespace

void NotedError::enable() noexcept { observed = true; }

NotedError::NotedError(int error) noexcept {
  if (!observed) return;
  handled = true;
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0, error_class = MPI_ERR_UNKNOWN;
  real.Error_class(error, &error_class);
  if (real.Error_string(error, text, &length) != MPI_SUCCESS) length = 0;
  note_end(EndKind::mpi_error, error_class, std::string_view(text, static_cast<std::size_t>(length)));
}

void NotedError::forget() noexcept {
  handled = false;
  withdraw_end(EndKind::mpi_error);
}

bool NotedError::exists() noexcept { return handled; }

}  // namespace bestride::inline interpose
