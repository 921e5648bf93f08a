// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a collective of ranks on one node goes through the memory that they share, or is left to the MPI library.
//
// Pure functions of numbers that are equal on all members. The built-in limits were measured with 2 ranks on 2
// processors (bench/figures_one_node.md); of the blocking calls, MPICH 4.0.2 is not slower only in long contiguous
// alltoalls and reduce-scatters. That short calls are not left to it has another reason, too: in a call whose sizes
// don't match, which is an error, members on both sides of a bound would wait for each other. With more ranks than
// processors the library, which does not sleep while it waits, takes 1.6 to 1500 times as long.
#include <algorithm>
#include <array>
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
/// bench/figures_one_node.md), unless calibration measured the library.
enum class OneNodeLibrary : std::int32_t { mpich_4_0, mpich, other };
/// `version`: the text of MachineFingerprint::mpi_library, such as "MPICH 4.0.2 ch4:ucx".
constexpr OneNodeLibrary one_node_library(std::string_view version) noexcept {
  if (version.starts_with("MPICH 4.0.") && version.ends_with(" ch4:ucx")) return OneNodeLibrary::mpich_4_0;
  return version.starts_with("MPICH ") ? OneNodeLibrary::mpich : OneNodeLibrary::other;
}

/// A communicator of more ranks leaves its collectives on one node to the MPI library.
inline constexpr int most_ranks_on_one_node = 128;

/// Bytes of contiguous data that go through shared memory: for each pair of ranks or of the whole (per_pair()).
struct OneNodeBounds {
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();
  std::int64_t least = 0, most = -1;  ///< both included; least > most: none
  constexpr bool include(std::int64_t bytes) const noexcept { return least <= bytes && bytes <= most; }
  constexpr bool any() const noexcept { return least <= most; }
  bool operator==(const OneNodeBounds&) const = default;
};
/// Whether bounds of this collective count the bytes of CollectiveShape for each pair of ranks.
constexpr bool per_pair(Collective what) noexcept {
  return what == Collective::alltoall || what == Collective::allgather || what == Collective::allgatherv ||
         what == Collective::gather || what == Collective::scatter;
}

/// Which collectives of ranks on one node go through shared memory, unless the node is crowded or the user forces it:
/// built in for a library, or measured (one_node_measurements.hpp). Plain bytes, which rank 0 sends to all.
struct OneNodeLimits {
  using Table = std::array<OneNodeBounds, collective_count>;
  Table blocking{}, nonblocking{};  ///< by collective
  std::int32_t varying = 0;  ///< blocking ones with a size for each rank, whose members know only their own sizes
  std::int32_t barriers = 0;
  std::int32_t neighbors = 0;  ///< blocking neighbor collectives
  std::int32_t requests = 0;   ///< nonblocking neighbor collectives, nonblocking ones with a size for each rank, and
                               ///< persistent ones, which calibration does not measure

  static constexpr OneNodeLimits built_in(OneNodeLibrary library) noexcept;
};

constexpr OneNodeLimits OneNodeLimits::built_in(OneNodeLibrary library) noexcept {
  constexpr std::int64_t kib = 1024, unbounded = OneNodeBounds::unbounded;
  OneNodeLimits limits;
  const auto set = [](Table& table, Collective what, std::int64_t least, std::int64_t most) {
    table[static_cast<std::size_t>(what)] = {least, most};
    if (what == Collective::allgather) table[static_cast<std::size_t>(Collective::allgatherv)] = {least, most};
  };
  if (library == OneNodeLibrary::other) {
    set(limits.blocking, Collective::alltoall, 0, 1 * kib);
    return limits;
  }
  limits.varying = limits.barriers = limits.neighbors = 1;
  set(limits.blocking, Collective::alltoall, 0, 64 * kib);
  set(limits.blocking, Collective::reduce_scatter, 0, 512 * kib);
  for (const Collective what : {Collective::allgather, Collective::gather, Collective::scatter})
    set(limits.blocking, what, 0, unbounded);
  const bool measured = library == OneNodeLibrary::mpich_4_0;
  for (const Collective what : {Collective::allreduce, Collective::reduce})
    set(limits.blocking, what, measured ? 0 : 32 * kib, unbounded);
  if (!measured) return limits;
  set(limits.blocking, Collective::broadcast, 0, unbounded);
  limits.requests = 1;
  // MPICH takes 0.4 to 0.8 us longer for these than for blocking ones.
  set(limits.nonblocking, Collective::alltoall, 1, 64 * kib);
  set(limits.nonblocking, Collective::allgather, 256, unbounded);
  set(limits.nonblocking, Collective::gather, 8 * kib, unbounded);
  set(limits.nonblocking, Collective::scatter, 8 * kib, unbounded);
  set(limits.nonblocking, Collective::broadcast, 1 * kib, unbounded);
  set(limits.nonblocking, Collective::allreduce, 64, unbounded);
  set(limits.nonblocking, Collective::reduce_scatter, 2 * kib, 512 * kib);
  set(limits.nonblocking, Collective::reduce, 2 * kib, unbounded);
  return limits;
}

constexpr bool reduces(Collective what) noexcept {
  return what == Collective::allreduce || what == Collective::reduce || what == Collective::reduce_scatter;
}

/// The sizes of a collective that may go through shared memory, in the bytes of CollectiveShape. `always`: the node has
/// more ranks than processors that they may use, or the user forces it. An alltoall may at any size, because its
/// datatypes may have gaps, which only a member that has them knows.
constexpr OneNodeBounds sizes_on_one_node(Collective what, bool blocking, int ranks, bool always,
                                          const OneNodeLimits& limits) noexcept {
  if (ranks < 2 || ranks > most_ranks_on_one_node) return {};
  if (always || (blocking && what == Collective::alltoall)) return {blocking ? 0 : 1, OneNodeBounds::unbounded};
  OneNodeBounds sizes = (blocking ? limits.blocking : limits.nonblocking)[static_cast<std::size_t>(what)];
  if (!blocking) sizes.least = std::max<std::int64_t>(sizes.least, 1);
  if (!per_pair(what) || !sizes.any()) return sizes;
  const auto of_all = [ranks](std::int64_t bytes, std::int64_t rest) {
    return bytes > OneNodeBounds::unbounded / ranks - 1 ? OneNodeBounds::unbounded : bytes * ranks + rest;
  };
  return {of_all(sizes.least, 0), of_all(sizes.most, ranks - 1)};
}

/// Where a blocking collective goes, apart from those of which members know only their own sizes. `bytes`: the bytes of
/// CollectiveShape. `always`: the node has more ranks than processors that they may use, or the user forces it.
constexpr OneNodeChoice choose_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always,
                                           const OneNodeLimits& limits) noexcept {
  if (!sizes_on_one_node(what, true, ranks, always, limits).include(bytes)) return OneNodeChoice::library;
  const OneNodeBounds bounds = limits.blocking[static_cast<std::size_t>(what)];
  return always || bounds.include(bytes / (per_pair(what) ? ranks : 1)) ? OneNodeChoice::shared_memory
                                                                        : OneNodeChoice::if_any_has_gaps;
}

/// Whether a member takes part in a blocking alltoall of which it knows only its own sizes. Each member waits for all
/// others, so if one does not take part, none does. `longest`: bytes of its longest block; `gaps`: one of its datatypes
/// has gaps.
constexpr bool varying_alltoall_on_one_node(std::int64_t longest, bool gaps, bool always,
                                            const OneNodeLimits& limits) noexcept {
  return always || gaps || limits.varying ||
         limits.blocking[static_cast<std::size_t>(Collective::alltoall)].include(longest);
}

/// Whether a nonblocking collective goes through shared memory. Its members can't ask each other whether a datatype has
/// gaps, so only the size decides.
constexpr bool nonblocking_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always,
                                       const OneNodeLimits& limits) noexcept {
  return sizes_on_one_node(what, false, ranks, always, limits).include(bytes);
}

/// Whether a persistent collective goes through shared memory. `varying`: it has a size for each block. `gaps`: a
/// datatype of any member has gaps. MPICH starts short contiguous ones faster than blocking ones.
constexpr bool persistent_on_one_node(Collective what, std::int64_t bytes, int ranks, bool always, bool varying,
                                      bool gaps) noexcept {
  constexpr std::int64_t kib = 1024;
  if (bytes < 1 || ranks < 2) return false;
  if (always) return true;
  const std::int64_t size = bytes / (per_pair(what) ? ranks : 1);
  switch (what) {
    case Collective::alltoall: return gaps || (size >= kib && (varying || size <= 64 * kib));
    case Collective::allgather:
    case Collective::allgatherv:
    case Collective::broadcast: return size >= 4 * kib;
    case Collective::gather:
    case Collective::scatter: return size >= 8 * kib;
    case Collective::allreduce: return size >= 64;
    case Collective::reduce: return size >= 2 * kib;
    case Collective::reduce_scatter: return size >= 2 * kib && size <= 512 * kib;
  }
  return false;
}

/// Whether a persistent neighbor collective goes through shared memory. `longest`: bytes of the longest message of any
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
