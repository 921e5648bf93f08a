// SPDX-License-Identifier: Apache-2.0
#pragma once
// UCX's datatypes with functions of their own, as <ucp/api/ucp.h> declares them. The header itself is not needed to
// build, since the functions are found in the MPI library's imports.
#include <cstddef>
#include <cstdint>

namespace bestride::inline interpose {

using Status = signed char;  ///< ucs_status_t
inline constexpr Status success = 0;
using TransportType = std::uint64_t;  ///< ucp_datatype_t

/// The major version of UCX whose ucp_generic_dt_ops_t is known to be `Operations`.
inline constexpr unsigned known_major_version = 1;

/// ucp_generic_dt_ops_t. UCX calls start_pack or start_unpack for each message, then pack or
/// unpack for its fragments, by any thread and in any order, then finish.
struct Operations {
  void* (*start_pack)(void* context, const void* buffer, std::size_t count);
  void* (*start_unpack)(void* context, void* buffer, std::size_t count);
  std::size_t (*packed_size)(void* state);
  std::size_t (*pack)(void* state, std::size_t offset, void* destination, std::size_t most);
  Status (*unpack)(void* state, std::size_t offset, const void* source, std::size_t bytes);
  void (*finish)(void* state);
  bool operator==(const Operations&) const = default;
};

}  // namespace bestride::inline interpose
