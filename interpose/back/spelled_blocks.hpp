// SPDX-License-Identifier: Apache-2.0
#pragma once
// One direction of a collective whose blocks have one type: the user's arguments, and the same bytes respelled.
//
// A second spelling has another extent, and blocks lie at multiples of it. So where a rank has several blocks, the respelled ones
// must fall on the same places: the user's block is as long as all turns of its outermost loop (rows of an array, tiles; not a bare
// MPI_Type_vector, whose last stride is cut), or its displacements are multiples of that loop's stride. Else the user's arguments
// stand.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interpose/back/exchange.hpp"
#include "interpose/back/sides.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {

/// Arguments as the user gave them. Buffer: const void* for what is sent, void* for what is received.
template <class Buffer, class Count>
struct OneBlock {
  static constexpr bool has_arrays = false, many = false;
  Buffer buffer;
  Count count;
  MPI_Datatype type;

  auto arguments() const noexcept { return std::tuple(buffer, count, type); }
  std::int64_t longest(int) const noexcept { return count; }
  /// Elements from the buffer's begin to the end of the last block.
  std::int64_t reach(int) const noexcept { return count; }
};
/// A block for each rank, one after the other.
template <class Buffer, class Count>
struct EqualBlocks {
  static constexpr bool has_arrays = false, many = true;
  Buffer buffer;
  Count count;
  MPI_Datatype type;

  auto arguments() const noexcept { return std::tuple(buffer, count, type); }
  std::int64_t longest(int) const noexcept { return count; }
  std::int64_t reach(int ranks) const noexcept { return ranks * std::int64_t{count}; }
};
/// A block for each rank, each with a count and a displacement in extents.
template <class Buffer, class Count, class Displacement>
struct VaryingBlocks {
  static constexpr bool has_arrays = true, many = true;
  Buffer buffer;
  const Count* counts;
  const Displacement* at;
  MPI_Datatype type;

  auto arguments() const noexcept { return std::tuple(buffer, counts, at, type); }
  /// Elements of the longest of `ranks` blocks; -1 if an argument is not sound.
  std::int64_t longest(int ranks) const noexcept {
    std::int64_t most = 0;
    if (!buffer || !counts || !at) return -1;
    for (int i = 0; i < ranks; ++i) {
      if (counts[i] < 0) return -1;
      most = most < counts[i] ? counts[i] : most;
    }
    return most;
  }
  std::int64_t reach(int ranks) const noexcept {
    std::int64_t farthest = 0;
    for (int i = 0; i < ranks; ++i) farthest = std::max<std::int64_t>(farthest, std::int64_t{at[i]} + counts[i]);
    return farthest;
  }
};

template <class Buffer>
using DirectionOf = std::conditional_t<std::is_same_v<Buffer, const void*>, Outgoing, Incoming>;

/// What MPI is handed in place of Given.
///   prepare(entry, comm, ranks)  true if that is something else; may throw std::bad_alloc. `entry`: of the type, decoded
///   arguments()                  what MPI is handed, after prepare() returned true
///   side()                       for the report
/// Here: one count for all blocks, of which there may be only one.
template <class Given>
class RespelledBlocks {
 public:
  explicit RespelledBlocks(const Given& given) noexcept : given_(given) {}
  bool prepare(TypeEntry& entry, MPI_Comm comm, int) noexcept {
    if (!side_.prepare(given_.buffer, given_.count, &entry, MPI_ANY_SOURCE, comm, largest_count<Count>, respelled_only)) return false;
    std::int64_t step = 0, handed = 0;
    if (!Given::many || (!__builtin_mul_overflow(std::int64_t{given_.count}, entry.extent(), &step) &&
                         !__builtin_mul_overflow(side_.count(), side_.plan()->respelled()->extent, &handed) && step == handed))
      return true;
    side_.leave("extent");
    return false;
  }
  auto arguments() const noexcept {
    return std::tuple(static_cast<Buffer>(side_.buffer()), static_cast<Count>(side_.count()), side_.type());
  }
  const Side& side() const noexcept { return side_; }

 private:
  using Buffer = decltype(Given::buffer);
  using Count = decltype(Given::count);
  Given given_;
  DirectionOf<Buffer> side_;
};

template <class Buffer, class Count, class Displacement>
class RespelledBlocks<VaryingBlocks<Buffer, Count, Displacement>> {
 public:
  explicit RespelledBlocks(const VaryingBlocks<Buffer, Count, Displacement>& given) noexcept : given_(given) {}
  bool prepare(TypeEntry& entry, MPI_Comm comm, int ranks) {
    const std::int64_t longest = given_.longest(ranks);
    if (longest <= 0) return false;
    bool equal = true;
    int first = 0;
    for (int i = ranks; i-- > 0;) {
      equal = equal && (given_.counts[i] == 0 || given_.counts[i] == longest);
      if (given_.counts[i] == longest) first = i;
    }
    const auto* base = static_cast<const char*>(static_cast<const void*>(given_.buffer));
    void* block = const_cast<char*>(base + std::int64_t{given_.at[first]} * entry.extent());
    if (!side_.prepare(block, longest, &entry, MPI_ANY_SOURCE, comm, largest_count<Count>, respelled_only))
      return false;
    Plan* plan = side_.plan();
    // Blocks of several lengths: one element's spelling, if any number of elements is so many times as long.
    if (!equal && !(plan = find_plan(entry, 1))) return leave("first use");
    spelled_plan_ = PlanRef(plan);
    const Respelled* spelled = plan->respelled();
    if (!spelled) return leave("no spelling");
    std::int64_t length = 0;
    if (!equal && (__builtin_mul_overflow(spelled->count, spelled->extent, &length) || length != entry.extent()))
      return leave("extent");
    counts_.assign(static_cast<std::size_t>(ranks), 0);
    at_.assign(static_cast<std::size_t>(ranks), 0);
    for (int i = 0; i < ranks; ++i) {
      if (given_.counts[i] == 0) continue;
      std::int64_t count = spelled->count, bytes = 0;
      if (!equal && __builtin_mul_overflow(count, std::int64_t{given_.counts[i]}, &count)) return leave("count");
      if (__builtin_mul_overflow(std::int64_t{given_.at[i]}, entry.extent(), &bytes)) return leave("count");
      if (bytes % spelled->extent != 0) return leave("extent");
      const std::int64_t at = bytes / spelled->extent;
      if (!std::in_range<Count>(count) || !std::in_range<Displacement>(at)) return leave("count");
      counts_[static_cast<std::size_t>(i)] = static_cast<Count>(count);
      at_[static_cast<std::size_t>(i)] = static_cast<Displacement>(at);
    }
    return true;
  }
  auto arguments() const noexcept {
    auto* first = static_cast<char*>(const_cast<void*>(static_cast<const void*>(given_.buffer))) + spelled_plan_->layout()->offset();
    return std::tuple(static_cast<Buffer>(first), counts_.data(), at_.data(), spelled_plan_->respelled()->type);
  }
  const Side& side() const noexcept { return side_; }

 private:
  bool leave(const char* why) noexcept {
    side_.leave(why);
    return false;
  }
  VaryingBlocks<Buffer, Count, Displacement> given_;
  DirectionOf<Buffer> side_;  ///< of the longest block
  PlanRef spelled_plan_;
  std::vector<Count> counts_;
  std::vector<Displacement> at_;
};

}  // namespace bestride
