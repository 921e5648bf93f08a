// SPDX-License-Identifier: Apache-2.0
#pragma once
// MPI errors for device memory in calls that can't use a staging buffer. The text names a remedy: each error has an
// error code of its own, whose MPI_Error_string is that text, and the text is printed once to stderr. Failed transfers
// are handled in mpi_errors.hpp.
#include <mpi.h>

#include <cstdint>
#include <string>

namespace bestride::inline interpose {

enum class DeviceError : std::uint8_t {
  unsupported,  ///< a one-sided call, a file operation, a partitioned message
  unknown,      ///< a datatype for which the accessed bytes can't be determined
};
inline constexpr int device_error_count = 2;

/// The error code; created at the first call. Its error class is a new one
/// (quirks::texts_of_predefined_classes_are_garbage). If the code can't be created, MPI_ERR_OTHER.
int error_code_of(DeviceError device_error) noexcept;

/// Reports the error (once for each kind), calls the error handler and returns the error code, which the MPI call has
/// to return.
int raise_device_error(MPI_Comm comm, DeviceError device_error, const std::string& cause);
int raise_device_error_on_window(MPI_Win window, DeviceError device_error, const std::string& cause);
int raise_device_error_on_file(MPI_File file, DeviceError device_error, const std::string& cause);

}  // namespace bestride::inline interpose
