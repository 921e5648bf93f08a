// SPDX-License-Identifier: Apache-2.0
#pragma once
// Forced failures: every place where the back can fail internally asks here first, so that a test can make each of them fail
// and see that the job's results stay the same. Compiled in always, because a test of another binary than the one shipped
// tests another binary; the price is one relaxed load of a word that is zero, on paths that allocate anyway.
// BESTRIDE_TEST_FAIL=name[,name...] or "all" sets it; "all" is every one with which the back still starts and calls still succeed.
#include <atomic>
#include <cstdint>
#include <string_view>

namespace bestride {

enum class FailPoint : std::uint8_t {
  thread,    ///< the per-thread cache
  type,      ///< the entry of a committed type
  decode,    ///< decoding a type
  plan,      ///< the plan of a (type, count)
  packer,    ///< compiling a packer
  respell,   ///< making a respelled type
  lease,     ///< a packing buffer
  owed,      ///< what is remembered of a request
  statuses,  ///< our own statuses for a completion call
  arrays,    ///< rewritten arguments of a neighbour collective
  communicator,  ///< what is remembered of a communicator
  made,      ///< the same of those that are made after MPI_Init
  queue,     ///< the collectives of a communicator over several nodes
  table,     ///< a wider table of handles or of requests
  arena,     ///< memory in which results of allgathers are kept
  window,    ///< memory shared by the ranks of a node
  presence,  ///< the socket that tells others of this rank, or asks for them
  topology,  ///< learning which ranks share a node
  report,    ///< a rank's part of the report, and its file
  operation,  ///< carrying out a collective, which is then an error
  symbol,    ///< finding a function in the MPI library
  start,     ///< making the runtime
  count
};

inline std::atomic<std::uint32_t> failing{0};

inline bool fail_here(FailPoint point) noexcept {
  return (failing.load(std::memory_order_relaxed) >> static_cast<int>(point)) & 1u;
}

/// Sets `failing` from the text of BESTRIDE_TEST_FAIL. Unknown names are ignored.
void set_failing(std::string_view names) noexcept;

}  // namespace bestride
