// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds an equivalent datatype, with the same type map and signature, that the MPI library handles faster: count x
// resized(child, 0, stride).
//
// MPICH packs and unpacks a message in fragments. A fragment that begins or ends inside an element costs one backend
// call for each block; whole elements go through a fast kernel. With the outermost loop exposed as `count` the elements
// are small: 9 to 12 times faster for 8-byte blocks (measured on MPICH 4.0.2).
//
// A contiguous layout has an equivalent datatype, too: one element whose extent is larger than its size. The bytes are
// the same, but the library does not use its contiguous rendezvous (one system call that copies between processes); it
// uses its pipelined shared-memory protocol. That is 2 to 3 times faster from 12 KiB up where the system call is slow
// (measured on MPICH 4.0.2 in a virtual machine), and slower elsewhere; the profile decides.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "datatype/layout.hpp"
#include "datatype/mpi_calls.hpp"
#include "datatype/respellable.hpp"

namespace bestride::inline datatype {

/// A committed datatype owned by the caller, to be sent `count` times from buffer + layout.offset(). It has the same
/// bytes in the same order and the same signature as the original (type, count). With MPI_BOTTOM the address is
/// layout.offset() itself.
struct Respelled {
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::int64_t extent = 0;  ///< of `type`, in bytes; its lower bound is 0
  int types_alive = 0;      ///< derived types that the MPI library keeps until `type` is freed: it and its components
};

/// True if an equivalent datatype exists: the layout is respellable() and its basic type is known.
inline bool can_respell(const Layout& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept {
  return leaf != MPI_DATATYPE_NULL && respellable(layout, leaf_size);
}

/// nullopt if there is no equivalent datatype or an MPI call failed. The caller frees `type` (any time after the calls
/// that use it were started, as MPI allows). `leaf_size`: size of the basic type in bytes.
std::optional<Respelled> respell(const Layout& layout, MPI_Datatype leaf, std::int64_t leaf_size,
                                 const DatatypeCalls& mpi);

}  // namespace bestride::inline datatype
