// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a collective of ranks on one node goes through the memory that they share, or is left to the MPI library.
//
// A pure function of numbers that are equal on all members. The bounds were measured with 2 ranks on 2 processors and
// MPICH 4.0.2 (bench/figures_one_node.md); of the blocking calls, only long contiguous alltoalls and reduce-scatters
// are not faster. That short ones are not left to the library has another reason, too: in a call whose sizes don't
// match, which is an error, members on both sides of a bound would wait for each other. With more ranks than processors
// the library, which does not sleep while it waits, takes 1.6 to 1500 times as long.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

#include "perfmodel/collective/shape.hpp"

namespace bestride::inline perfmodel {

enum class OneNodeChoice {
  library,
  shared_memory,
  /// Shared memory if any member has a datatype with gaps; the members must agree on this first.
  if_any_has_gaps,
};

/// MPI libraries whose collectives within one node were measured against shared memory. For another MPICH or library
/// only what gained with each measured one of its kind goes through shared memory (MPICH 5.0.2, Intel MPI 2021.18;
/// bench/figures_one_node.md).
enum class OneNodeLibrary : std::int32_t { mpich_4_0, mpich, other };
/// `version`: as MachineFingerprint::mpi_library.
constexpr OneNodeLibrary one_node_library(std::string_view version) noexcept {
  if (version.starts_with("MPICH 4.0.") && version.ends_with(" ch4:ucx")) return OneNodeLibrary::mpich_4_0;
  return version.starts_with("MPICH ") ? OneNodeLibrary::mpich : OneNodeLibrary::other;
}

/// Sizes of contiguous data at which shared memory is faster. `least`: of nonblocking and persistent calls.
struct OneNodeBounds {
  std::int64_t least, most;
  bool per_pair;  ///< bytes for each pair of ranks; false: of the whole
};
constexpr OneNodeBounds one_node_bounds(Collective what) noexcept {
  constexpr std::int64_t kib = 1024, unbounded = std::numeric_limits<std::int64_t>::max();
  switch (what) {
    case Collective::alltoall: return {1, 64 * kib, true};
    case Collective::allgather:
    case Collective::allgatherv: return {4 * kib, unbounded, true};
    case Collective::gather:
    case Collective::scatter: return {8 * kib, unbounded, true};
    case Collective::broadcast: return {4 * kib, unbounded, false};
    case Collective::allreduce: return {64, unbounded, false};
    case Collective::reduce_scatter: return {2 * kib, 512 * kib, false};
    case Collective::reduce: return {2 * kib, unbounded, false};
  }
  return {unbounded, unbounded, false};
}

/// The same for blocking calls. A call that is left to the library takes 0.1 us more than without Bestride, as long as
/// a short one may lose in shared memory.
constexpr OneNodeBounds blocking_one_node_bounds(Collective what, OneNodeLibrary library) noexcept {
  constexpr std::int64_t kib = 1024;
  OneNodeBounds bounds = one_node_bounds(what);
  bounds.least = 0;
  if (library == OneNodeLibrary::mpich_4_0) return bounds;
  if (library == OneNodeLibrary::mpich) {
    if (what == Collective::broadcast) bounds.most = kib;
    return bounds;
  }
  switch (what) {
    case Collective::alltoall: return {0, 8 * kib, true};
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::gather: return {0, 4 * kib, true};
    case Collective::broadcast: return {0, 4 * kib, false};
    case Collective::scatter: return bounds;
    default: return {0, kib, false};
  }
}
/// Whether the members' barriers, neighbour collectives, nonblocking and persistent collectives go through it.
constexpr bool one_node_barriers(OneNodeLibrary library) noexcept { return library != OneNodeLibrary::other; }
constexpr bool one_node_neighbors(OneNodeLibrary library) noexcept { return library != OneNodeLibrary::other; }
constexpr bool one_node_nonblocking(OneNodeLibrary library) noexcept { return library == OneNodeLibrary::mpich_4_0; }

constexpr bool reduces(Collective what) noexcept {
  return what == Collective::allreduce || what == Collective::reduce || what == Collective::reduce_scatter;
}

/// The same for nonblocking collectives, whose members can't ask each other whether a datatype has gaps. MPICH takes
/// 0.4 to 0.8 us longer for them than for blocking ones.
constexpr OneNodeBounds nonblocking_one_node_bounds(Collective what) noexcept {
  OneNodeBounds bounds = one_node_bounds(what);
  if (what == Collective::allgather || what == Collective::allgatherv) bounds.least = 256;
  if (what == Collective::broadcast) bounds.least = 1024;
  return bounds;
}

/// The least size of a collective that may go through shared memory, in bytes as in CollectiveShape. `always`: the node
/// has more ranks than processors that they may use, or the user forces it.
constexpr std::int64_t least_on_one_node(Collective what, bool blocking, int ranks, bool always,
                                         OneNodeLibrary library) noexcept {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  if (ranks < 2) return never;
  if (always) return blocking ? 0 : 1;
  if (!blocking && !one_node_nonblocking(library)) return never;
  const OneNodeBounds bounds = blocking ? blocking_one_node_bounds(what, library) : nonblocking_one_node_bounds(what);
  return bounds.least == never ? never : bounds.least * (bounds.per_pair ? ranks : 1);
}

/// `bytes`, `always`: as for least_on_one_node().
constexpr OneNodeChoice choose_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always,
                                           OneNodeLibrary library) noexcept {
  if (bytes < least_on_one_node(what, true, ranks, always, library)) return OneNodeChoice::library;
  const OneNodeBounds bounds = blocking_one_node_bounds(what, library);
  if (always || bytes / (bounds.per_pair ? ranks : 1) <= bounds.most) return OneNodeChoice::shared_memory;
  return what == Collective::alltoall ? OneNodeChoice::if_any_has_gaps : OneNodeChoice::library;
}

/// Whether a member takes part in a blocking alltoall of which it knows only its own sizes; each member waits for all
/// others, so one that does not is followed. `longest`: bytes of its longest block; `gaps`: of its datatypes.
constexpr bool varying_alltoall_on_one_node(std::int64_t longest, bool gaps, bool always,
                                            OneNodeLibrary library) noexcept {
  return always || gaps || longest <= blocking_one_node_bounds(Collective::alltoall, library).most ||
         library != OneNodeLibrary::other;
}

/// As choose_on_one_node(), for a nonblocking collective.
constexpr bool nonblocking_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always,
                                       OneNodeLibrary library) noexcept {
  if (bytes < least_on_one_node(what, false, ranks, always, library)) return false;
  const OneNodeBounds bounds = nonblocking_one_node_bounds(what);
  return always || bytes / (bounds.per_pair ? ranks : 1) <= bounds.most;
}

/// The same for a persistent collective. `varying`: the form with a size for each block. `gaps`: a datatype of any
/// member has gaps. MPICH starts short contiguous ones faster than blocking ones.
constexpr bool persistent_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always, bool varying,
                                      bool gaps) noexcept {
  if (bytes < 1 || ranks < 2) return false;
  if (always) return true;
  if (what != Collective::alltoall) {
    const OneNodeBounds bounds = one_node_bounds(what);
    const std::int64_t size = bytes / (bounds.per_pair ? ranks : 1);
    return size >= bounds.least && size <= bounds.most;
  }
  return gaps || (bytes / ranks >= 1024 && (varying || bytes / ranks <= one_node_bounds(what).most));
}

/// Whether a persistent neighbour collective goes through shared memory. `longest`: bytes of the longest message of any
/// member; `gaps`: a datatype of any member has gaps. Nonblocking ones, whose members can't ask each other, always do.
/// Measured with 2 ranks: MPICH carries out contiguous messages of up to 4 KiB 1.1 to 1.4 times as fast, and those of
/// 64 KiB and more up to 1.2 times.
constexpr bool persistent_neighbors_on_one_node(std::int64_t longest, bool always, bool gaps) noexcept {
  return always || (gaps ? longest >= 1024 : longest >= 8 * 1024 && longest <= 32 * 1024);
}

/// Backoff: after a call in which the members asked each other without effect, the next 1, 2, 4, ... calls (up to a
/// bound) don't ask. The count is the same on all members.
class AskingInterval {
 public:
  bool asks() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }
  void answered(bool in_vain) noexcept { left_ = length_ = in_vain ? std::min(most, std::max(1, 2 * length_)) : 0; }

 private:
  static constexpr int most = 16;
  int left_ = 0, length_ = 0;
};

}  // namespace bestride::inline perfmodel
