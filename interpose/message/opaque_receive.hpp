// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpaqueReceive: receives packed bytes of a datatype whose layout is not known; MPI_Unpack unpacks them. It keeps a
// duplicate of the type, because the application may free the type while the receive is pending.
#include <mpi.h>

#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

class OpaqueReceive {
 public:
  OpaqueReceive() = default;
  OpaqueReceive(OpaqueReceive&& other) noexcept;
  OpaqueReceive& operator=(OpaqueReceive&& other) noexcept;
  /// Frees the duplicate. Must run within an MPI call.
  ~OpaqueReceive();

  /// Returns false if the MPI library fails. `comm`: a valid communicator, for MPI_Unpack.
  bool open(MPI_Datatype type, std::int64_t element_bytes, MPI_Comm comm) noexcept;
  explicit operator bool() const noexcept { return type_ != MPI_DATATYPE_NULL; }
  /// Unpacks the first `arrived` packed bytes into the elements at `user`; later bytes keep their values.
  void unpack(const std::byte* packed, std::int64_t arrived, void* user) const noexcept;

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  std::int64_t element_bytes_ = 0;
  MPI_Aint extent_ = 0;
  MPI_Comm comm_ = MPI_COMM_NULL;
};

}  // namespace bestride::inline interpose
