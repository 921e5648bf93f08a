// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forced failures for tests: every place where the backend can fail internally asks inject_failure() first, so a test
// can make each of them fail and check that the job's results stay the same. Always compiled in, so that tests run the
// binary that is shipped. The cost is one relaxed load of a word that is zero, on paths that allocate anyway.
// BESTRIDE_FORCE=fail=name[+name...] or fail=all sets the failures; "all" means every failure with which the backend
// still starts and calls still succeed.
#include <atomic>
#include <cstdint>
#include <string_view>

namespace bestride::inline interpose {

enum class FailPoint : std::uint8_t {
  thread,        ///< the per-thread plan cache
  type,          ///< the entry of a committed type
  decode,        ///< decoding a type
  plan,          ///< the plan of a (type, count)
  packer,        ///< compiling a packer
  respell,       ///< making a respelled type
  lease,         ///< a packing buffer
  registration,  ///< a type that the engine serves
  message,       ///< a message that the engine serves
  completion,    ///< the completion record of a request
  statuses,      ///< our own statuses for a completion call
  arrays,        ///< rewritten arguments of a neighbor collective
  communicator,  ///< the entry of a communicator
  made,          ///< the entry of a communicator that is created after MPI_Init
  queue,         ///< the queue of a communicator's hierarchical collectives
  table,         ///< growing the table of handles or of requests
  arena,         ///< memory that keeps results of allgathers
  offers,        ///< small memory in which the ranks of a node offer each other windows
  window,        ///< memory shared by the ranks of a node
  presence,      ///< the socket that announces this rank or looks for others (peer discovery)
  topology,      ///< discovering which ranks share a node
  link,          ///< the buffer with which the link between nodes is measured in MPI_Init
  order,         ///< memory to find out in which order the MPI library adds numbers
  attribute,     ///< the attribute that shows the end of MPI_COMM_SELF
  report,        ///< a rank's part of the report, and its file
  operation,     ///< executing a collective, which then returns an error
  symbol,        ///< looking up a function in the MPI library
  start,         ///< creating the runtime
  count
};

inline std::atomic<std::uint32_t> injected_failures{0};

inline bool inject_failure(FailPoint point) noexcept {
  return (injected_failures.load(std::memory_order_relaxed) >> static_cast<int>(point)) & 1u;
}

/// Sets `injected_failures` from the choice `fail` of BESTRIDE_FORCE. Unknown names are ignored.
void set_injected_failures(std::string_view names) noexcept;

}  // namespace bestride::inline interpose
