// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/hierarchical/operations.hpp"

#include <algorithm>
#include <new>
#include <vector>

#include "collectives/block_sizes.hpp"
#include "collectives/broadcast.hpp"
#include "collectives/cache/allgather.hpp"
#include "collectives/collect.hpp"
#include "collectives/distribute.hpp"
#include "collectives/exchange.hpp"
#include "collectives/reduce.hpp"
#include "collectives/reduce_scatter.hpp"
#include "collectives/share.hpp"

namespace bestride {
namespace {

/// Copies an operand to another, as much as it has room for, by way of `staging` where neither lies together.
void copy(Operand from, Operand to, std::byte* staging, std::int64_t staging_bytes) noexcept {
  const std::int64_t bytes = std::min(from.bytes(), to.bytes());
  if (const std::byte* data = from.at(0)) return to.write(data, 0, bytes);
  if (std::byte* data = to.at(0)) return from.read(data, 0, bytes);
  for (std::int64_t first = 0; first < bytes; first += staging_bytes) {
    const std::int64_t last = std::min(bytes, first + staging_bytes);
    from.read(staging, first, last);
    to.write(staging, first, last);
  }
}

/// MPI could not pack what has to be sent: the operation fails.
void must(bool good) {
  if (!good) throw std::bad_alloc();
}

Strand allgather(Hierarchy& hierarchy, const UserBlocks& all, CollectiveCache* cache, Pace pace) {
  const RankBlocks strings(hierarchy.topology(), all);
  if (cache)
    co_await allgather_cached(hierarchy, strings, cache->table, cache->arena, pace);
  else
    co_await share(hierarchy, strings, pace);
}

Strand reduce_scatter_of(Hierarchy& hierarchy, const UserBlocks& input, Operand output, const MpiReduction& reduction, Pace pace) {
  const ReductionOrder order(hierarchy.topology(), reduction.ordered);
  co_await reduce_scatter(hierarchy, input, output, reduction, order, pace);
}

Strand allreduce_of(Hierarchy& hierarchy, Operand input, Operand output, const MpiReduction& reduction, Pace pace) {
  const ReductionOrder order(hierarchy.topology(), reduction.ordered);
  co_await allreduce(hierarchy, input, output, reduction, order, pace);
}

Strand reduce_of(Hierarchy& hierarchy, Operand input, Operand output, int root, const MpiReduction& reduction, Pace pace) {
  const ReductionOrder order(hierarchy.topology(), reduction.ordered);
  co_await reduce(hierarchy, input, output, root, reduction, order, pace, reduce_segment(hierarchy, reduction.element_bytes));
}

/// Equal blocks, of which a rank has all or only its own.
class EqualOperands final : public Operands {
 public:
  EqualOperands(const UserBlocks* all, Operand own, int rank, std::int64_t block_bytes) noexcept
      : all_(all), own_(own), rank_(rank), block_bytes_(block_bytes) {}
  Operand of(int rank) const noexcept override { return all_ ? all_->of(rank) : rank == rank_ ? own_ : Operand(nullptr, block_bytes_); }
  std::int64_t bytes(int) const noexcept override { return block_bytes_; }

 private:
  const UserBlocks* all_;
  Operand own_;
  int rank_;
  std::int64_t block_bytes_;
};

Strand gather_of(Hierarchy& hierarchy, EqualOperands blocks, int root, Pace pace) {
  const RankBlocks strings(hierarchy.topology(), blocks);
  co_await collect(hierarchy, strings, root, pace);
}

Strand scatter_of(Hierarchy& hierarchy, EqualOperands blocks, int root, Pace pace) {
  const RankBlocks strings(hierarchy.topology(), blocks);
  co_await distribute(hierarchy, strings, root, pace);
}

/// Blocks as long as their senders say, of which a rank has all or only its own.
class ToldOperands final : public Operands {
 public:
  ToldOperands(const UserBlocks* all, Operand own, int rank, const std::vector<std::int64_t>& sizes) noexcept
      : all_(all), own_(own), rank_(rank), sizes_(sizes) {}
  Operand of(int rank) const noexcept override { return all_ ? all_->of(rank) : rank == rank_ ? own_ : Operand(nullptr, bytes(rank)); }
  std::int64_t bytes(int rank) const noexcept override { return sizes_[static_cast<std::size_t>(rank)]; }

 private:
  const UserBlocks* all_;
  Operand own_;
  int rank_;
  const std::vector<std::int64_t>& sizes_;
};

/// `own`: what this rank sends; `all`: on the root, where it goes.
Strand gatherv_of(Hierarchy& hierarchy, const UserBlocks* all, Operand own, int root, Pace pace, bool* truncated) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(hierarchy.topology().ranks()));
  sizes[static_cast<std::size_t>(hierarchy.rank())] = own.bytes();
  co_await tell_sizes_upward(hierarchy, root, sizes);
  for (std::size_t rank = 0; all && rank < sizes.size(); ++rank) *truncated = *truncated || sizes[rank] > all->bytes(static_cast<int>(rank));
  const ToldOperands blocks(all, own, hierarchy.rank(), sizes);
  const RankBlocks strings(hierarchy.topology(), blocks);
  co_await collect(hierarchy, strings, root, pace);
}

/// `own`: where what this rank gets goes; `all`: on the root, what is sent.
Strand scatterv_of(Hierarchy& hierarchy, const UserBlocks* all, Operand own, int root, Pace pace, bool* truncated) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(hierarchy.topology().ranks()));
  for (std::size_t rank = 0; all && rank < sizes.size(); ++rank) sizes[rank] = all->bytes(static_cast<int>(rank));
  co_await tell_sizes_downward(hierarchy, root, sizes);
  *truncated = sizes[static_cast<std::size_t>(hierarchy.rank())] > own.bytes();
  const ToldOperands blocks(all, own, hierarchy.rank(), sizes);
  const RankBlocks strings(hierarchy.topology(), blocks);
  co_await distribute(hierarchy, strings, root, pace);
}

}  // namespace

Strand ReduceOperation::begin(Hierarchy& hierarchy) {
  UserBlocks& input = input_ ? *input_ : *output_;
  must(input.fill());
  return reduce_of(hierarchy, input.of(0), output_ ? output_->of(0) : Operand(), root_, reduction_, pace);
}

Strand GatherOperation::begin(Hierarchy& hierarchy) {
  truncated = false;
  if (own_) must(own_->fill());
  if (all_) must(all_->fill());
  UserBlocks* const all = all_ ? &*all_ : nullptr;
  if (all && own_) copy(own_->of(0), all->of(hierarchy.rank()), hierarchy.staging(), Hierarchy::staging_bytes);
  const Operand own = own_ ? own_->of(0) : all->of(hierarchy.rank());
  if (block_bytes_ == sizes_are_told) return gatherv_of(hierarchy, all, own, root_, pace, &truncated);
  return gather_of(hierarchy, EqualOperands(all, own, hierarchy.rank(), block_bytes_), root_, pace);
}

Strand ScatterOperation::begin(Hierarchy& hierarchy) {
  truncated = false;
  if (own_) must(own_->fill());
  if (all_) must(all_->fill());
  UserBlocks* const all = all_ ? &*all_ : nullptr;
  if (all && own_) copy(all->of(hierarchy.rank()), own_->of(0), hierarchy.staging(), Hierarchy::staging_bytes);
  const Operand own = own_ ? own_->of(0) : all->of(hierarchy.rank());
  if (block_bytes_ == sizes_are_told) return scatterv_of(hierarchy, all, own, root_, pace, &truncated);
  return scatter_of(hierarchy, EqualOperands(all, own, hierarchy.rank(), block_bytes_), root_, pace);
}

Strand AlltoallOperation::begin(Hierarchy& hierarchy) {
  truncated = false;
  must(input_.fill());
  must(output_.fill());
  return exchange(hierarchy, input_, output_, equal_, pace, &truncated);
}

Strand AllgatherOperation::begin(Hierarchy& hierarchy) {
  if (own_) {
    must(own_->fill());
    copy(own_->of(0), all_.of(hierarchy.rank()), hierarchy.staging(), Hierarchy::staging_bytes);
  } else {
    must(all_.fill());
  }
  return allgather(hierarchy, all_, cache, pace);
}

Strand BroadcastOperation::begin(Hierarchy& hierarchy) {
  if (hierarchy.rank() == root_) must(data_.fill());
  return broadcast(hierarchy, data_.of(0), root_, pace);
}

Strand ReduceScatterOperation::begin(Hierarchy& hierarchy) {
  must(input_.fill());
  const Operand output = kept_.place(output_.of(0), input_.of(hierarchy.rank()));
  return reduce_scatter_of(hierarchy, input_, output, reduction_, pace);
}

void ReduceScatterOperation::finish() noexcept {
  kept_.deliver(output_.of(0));
  output_.settle();
}

Strand AllreduceOperation::begin(Hierarchy& hierarchy) {
  UserBlocks& input = input_ ? *input_ : output_;
  must(input.fill());
  return allreduce_of(hierarchy, input.of(0), output_.of(0), reduction_, pace);
}

}  // namespace bestride
