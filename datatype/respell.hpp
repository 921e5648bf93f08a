// SPDX-License-Identifier: Apache-2.0
#pragma once
// The same type map and signature in the spelling the MPI library's engine is fast at: count x resized(child, 0, stride).
//
// MPICH's message path unpacks and packs fragments; a fragment that begins or ends inside an element costs one backend call
// per block, whole elements go through a fast kernel. Exposing the outermost loop as `count` makes the elements small:
// 9 to 12 times faster for 8-byte blocks (measured on MPICH 4.0.2).
//
// A contiguous layout has a second spelling too: one element with an extent larger than its size. The bytes are the same, but the
// library no longer takes its contiguous rendezvous (one system call that copies between processes) and goes through its
// pipelined shared-memory path instead: 2 to 3 times faster from 12 KiB up where that system call is slow (measured on MPICH
// 4.0.2 in a virtual machine), and slower elsewhere; the profile decides.
#include <mpi.h>

#include <cstdint>
#include <optional>

#include "datatype/layout.hpp"
#include "datatype/mpi_calls.hpp"
#include "datatype/respellable.hpp"

namespace bestride {

/// A committed datatype owned by the caller, to be sent `count` times from buffer + layout.offset(): same bytes in the same
/// order, same signature as the original (type, count). With MPI_BOTTOM the address is layout.offset() itself.
struct Respelled {
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::int64_t extent = 0;  ///< of `type`, in bytes; its lower bound is 0
};

/// True if a respelling exists: respellable(), of a known basic type.
inline bool can_respell(const Layout& layout, MPI_Datatype leaf, std::int64_t leaf_size) noexcept {
  return leaf != MPI_DATATYPE_NULL && respellable(layout, leaf_size);
}

/// nullopt if it can't be spelled so or an MPI call failed. The caller frees `type` (any time after the calls that use it
/// were started, as MPI allows). `leaf_size`: size of the basic type in bytes.
std::optional<Respelled> respell(const Layout& layout, MPI_Datatype leaf, std::int64_t leaf_size, const DatatypeCalls& mpi);

}  // namespace bestride
