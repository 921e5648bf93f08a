// SPDX-License-Identifier: Apache-2.0
#pragma once
// What an MPI function may wait for, from its name and group in the table of functions.
#include <cstdint>
#include <string>

namespace bestride::inline telemetry {

enum class CallKind : std::uint8_t {
  local,         ///< waits for nobody
  send,          ///< for `peer`
  receive,       ///< for `peer`; probes, too
  exchange,      ///< sends to `peer`, receives from `second_peer`
  wait_all,      ///< for all of its requests
  wait_any,      ///< for one of its requests
  from_root,     ///< broadcast, scatter
  to_root,       ///< gather, reduce
  from_lower,    ///< scan
  from_all,      ///< every other collective call
  neighborhood,  ///< for the neighbors, which are not known
  lock,          ///< MPI_Win_lock: for those that hold a lock of `peer`'s window; MPI_Win_lock_all: of any
  access,        ///< MPI_Win_start, MPI_Win_complete: for MPI_Win_post of the ranks of the epoch
  exposure,      ///< MPI_Win_wait, MPI_Win_test: for MPI_Win_complete of the ranks of the epoch
  one_sided,     ///< for data from or to `peer`, which need not call anything, but may have to be in MPI
  finalize,
  other,  ///< may wait, but not known for whom
};

/// The kind of a call or request, blocking or not. `collective`: it has an ordinal.
CallKind kind_of(std::uint16_t function, bool collective);
/// True if the function itself may wait for other ranks; false for MPI_Isend, MPI_Test, MPI_Comm_rank.
bool may_block(std::uint16_t function, bool collective);
/// MPI_Ssend in all its forms: complete only when its receive has begun.
bool is_synchronous_send(std::uint16_t function);
/// "MPI_Allreduce", without the "_c" of the large-count form, because both match each other; "an MPI call" if the
/// function is not known.
const std::string& function_name(std::uint16_t function);

}  // namespace bestride::inline telemetry
