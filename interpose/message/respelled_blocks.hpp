// SPDX-License-Identifier: Apache-2.0
#pragma once
// One direction of a collective whose blocks have one type: the user's arguments, and the respelled ones.
//
// A respelled type has a different extent, and blocks start at multiples of the extent. So if a rank has several
// blocks, the respelled blocks must start at the same addresses. This holds if the user's block is as long as all
// iterations of its outermost loop (rows of an array, tiles; not a bare MPI_Type_vector, whose last stride is cut), or
// if the displacements are multiples of that loop's stride. Otherwise the user's arguments are used.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "interpose/message/collective_exchange.hpp"
#include "interpose/message/endpoint.hpp"
#include "interpose/objects/plan_cache.hpp"

namespace bestride::inline interpose {

/// Arguments as the user gave them. Buffer: const void* for a send buffer, void* for a receive buffer.
template <class Buffer, class Count>
struct OneBlock {
  static constexpr bool has_arrays = false, many = false;
  Buffer buffer;
  Count count;
  MPI_Datatype type;

  auto arguments() const noexcept { return std::tuple(buffer, count, type); }
  std::int64_t longest(int) const noexcept { return count; }
  /// Elements from the start of the buffer to the end of the last block.
  std::int64_t reach(int) const noexcept { return count; }
};
/// One block per rank, one after the other.
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
/// One block per rank, each with a count and a displacement in extents.
template <class Buffer, class Count, class Displacement>
struct VaryingBlocks {
  static constexpr bool has_arrays = true, many = true;
  Buffer buffer;
  const Count* counts;
  const Displacement* at;
  MPI_Datatype type;

  auto arguments() const noexcept { return std::tuple(buffer, counts, at, type); }
  /// Elements of the longest of `ranks` blocks; -1 if an argument is invalid.
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
using DirectionOf = std::conditional_t<std::is_same_v<Buffer, const void*>, SendEndpoint, ReceiveEndpoint>;

/// The arguments that MPI is given in place of Given.
/// - prepare(entry, comm, ranks): true if they differ from the user's. May throw std::bad_alloc. `entry`: the type's,
/// decoded.
/// - arguments(): what MPI is given, after prepare() returned true.
/// - endpoint(): the endpoint, for the report.
/// This template is for one count for all blocks, of which there may be only one.
template <class Given>
class RespelledBlocks {
 public:
  explicit RespelledBlocks(const Given& given) noexcept : given_(given) {}
  bool prepare(TypeEntry& entry, MPI_Comm comm, int) noexcept {
    if (!endpoint_.prepare(given_.buffer, given_.count, &entry, MPI_ANY_SOURCE, comm, largest_count<Count>,
                           respelled_only))
      return false;
    std::int64_t step = 0, handed = 0;
    if (!Given::many ||
        (!__builtin_mul_overflow(std::int64_t{given_.count}, entry.extent(), &step) &&
         !__builtin_mul_overflow(endpoint_.count(), endpoint_.plan()->respelled(endpoint_.kind())->extent, &handed) &&
         step == handed))
      return true;
    endpoint_.forward_because("extent");
    return false;
  }
  auto arguments() const noexcept {
    return std::tuple(static_cast<Buffer>(endpoint_.buffer()), static_cast<Count>(endpoint_.count()), endpoint_.type());
  }
  const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  using Buffer = decltype(Given::buffer);
  using Count = decltype(Given::count);
  Given given_;
  DirectionOf<Buffer> endpoint_;
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
    if (!endpoint_.prepare(block, longest, &entry, MPI_ANY_SOURCE, comm, largest_count<Count>, respelled_only))
      return false;
    Plan* plan = endpoint_.plan();
    // For blocks of several lengths, one element is respelled. This requires that n respelled elements are n times as
    // long.
    if (!equal && !(plan = find_plan(entry, 1))) return forward_because("first use");
    respelled_plan_ = PlanRef(plan);
    const Respelled* spelled = plan->respelled(endpoint_.kind());
    if (!spelled) return forward_because("not respellable");
    std::int64_t length = 0;
    if (!equal && (__builtin_mul_overflow(spelled->count, spelled->extent, &length) || length != entry.extent()))
      return forward_because("extent");
    counts_.assign(static_cast<std::size_t>(ranks), 0);
    at_.assign(static_cast<std::size_t>(ranks), 0);
    for (int i = 0; i < ranks; ++i) {
      if (given_.counts[i] == 0) continue;
      std::int64_t count = spelled->count, bytes = 0;
      if (!equal && __builtin_mul_overflow(count, std::int64_t{given_.counts[i]}, &count))
        return forward_because("count");
      if (__builtin_mul_overflow(std::int64_t{given_.at[i]}, entry.extent(), &bytes)) return forward_because("count");
      if (bytes % spelled->extent != 0) return forward_because("extent");
      const std::int64_t at = bytes / spelled->extent;
      if (!std::in_range<Count>(count) || !std::in_range<Displacement>(at)) return forward_because("count");
      counts_[static_cast<std::size_t>(i)] = static_cast<Count>(count);
      at_[static_cast<std::size_t>(i)] = static_cast<Displacement>(at);
    }
    return true;
  }
  auto arguments() const noexcept {
    auto* first = static_cast<char*>(const_cast<void*>(static_cast<const void*>(given_.buffer))) +
                  respelled_plan_->layout()->offset();
    return std::tuple(static_cast<Buffer>(first), counts_.data(), at_.data(),
                      respelled_plan_->respelled(endpoint_.kind())->type);
  }
  const Endpoint& endpoint() const noexcept { return endpoint_; }

 private:
  bool forward_because(const char* why) noexcept {
    endpoint_.forward_because(why);
    return false;
  }
  VaryingBlocks<Buffer, Count, Displacement> given_;
  DirectionOf<Buffer> endpoint_;  ///< prepared for the longest block
  PlanRef respelled_plan_;
  std::vector<Count> counts_;
  std::vector<Displacement> at_;
};

}  // namespace bestride::inline interpose
