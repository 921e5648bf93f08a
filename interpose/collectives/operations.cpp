// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/operations.hpp"

#include <algorithm>
#include <new>

#include "collectives/algorithms/allgather.hpp"
#include "collectives/algorithms/alltoall.hpp"
#include "collectives/algorithms/bcast.hpp"
#include "collectives/algorithms/gather.hpp"
#include "collectives/algorithms/reduce.hpp"
#include "collectives/algorithms/reduce_scatter.hpp"
#include "collectives/algorithms/scatter.hpp"
#include "collectives/cache/allgather.hpp"
#include "collectives/one_node/data_movement.hpp"
#include "collectives/one_node/reductions.hpp"
#include "collectives/one_node/vote.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// Copies an operand to another one of the same size; through `staging` if neither is contiguous.
void copy(Operand from, Operand to, std::byte* staging, std::int64_t staging_bytes) noexcept {
  const std::int64_t bytes = from.bytes();
  if (const std::byte* data = from.at(0)) return to.write(data, 0, bytes);
  if (std::byte* data = to.at(0)) return from.read(data, 0, bytes);
  for (std::int64_t first = 0; first < bytes; first += staging_bytes) {
    const std::int64_t last = std::min(bytes, first + staging_bytes);
    from.read(staging, first, last);
    to.write(staging, first, last);
  }
}

Task allgather(Hierarchy& hierarchy, const UserBlocks& all, CollectiveCache* cache, PipelineSettings pipeline) {
  const RankBlocks vectors(hierarchy.topology(), all);
  if (cache)
    co_await cached_allgather(hierarchy, vectors, cache->table, cache->arena, pipeline);
  else
    co_await allgather(hierarchy, vectors, pipeline);
}

Task reduce_scatter_of(Hierarchy& hierarchy, const UserBlocks& input, Operand output, const MpiReduction& reduction,
                       PipelineSettings pipeline) {
  const ReductionOrder order(hierarchy.topology(), reduction.tree);
  co_await reduce_scatter(hierarchy, input, output, reduction, order, pipeline);
}

Task allreduce_of(Hierarchy& hierarchy, Operand input, Operand output, const MpiReduction& reduction,
                  PipelineSettings pipeline) {
  const ReductionOrder order(hierarchy.topology(), reduction.tree);
  co_await allreduce(hierarchy, input, output, reduction, order, pipeline);
}

Task reduce_of(Hierarchy& hierarchy, Operand input, Operand output, int root, const MpiReduction& reduction,
               PipelineSettings pipeline) {
  const ReductionOrder order(hierarchy.topology(), reduction.tree);
  co_await reduce(hierarchy, input, output, root, reduction, order, pipeline,
                  reduce_segment(hierarchy, reduction.element_bytes));
}

/// Equal blocks, of which a rank has all or only its own.
class EqualOperands final : public Operands {
 public:
  EqualOperands(const UserBlocks* all, Operand own, int rank, std::int64_t block_bytes) noexcept
      : all_(all), own_(own), rank_(rank), block_bytes_(block_bytes) {}
  Operand of(int rank) const noexcept override {
    return all_ ? all_->of(rank) : rank == rank_ ? own_ : Operand(nullptr, block_bytes_);
  }
  std::int64_t bytes(int) const noexcept override { return block_bytes_; }

 private:
  const UserBlocks* all_;
  Operand own_;
  int rank_;
  std::int64_t block_bytes_;
};

Task gather_of(Hierarchy& hierarchy, EqualOperands blocks, int root, PipelineSettings pipeline) {
  const RankBlocks vectors(hierarchy.topology(), blocks);
  co_await gather(hierarchy, vectors, root, pipeline);
}

Task scatter_of(Hierarchy& hierarchy, EqualOperands blocks, int root, PipelineSettings pipeline) {
  const RankBlocks vectors(hierarchy.topology(), blocks);
  co_await scatter(hierarchy, vectors, root, pipeline);
}

/// A member other than the root may return before the others have begun, so it can't learn later that one leaves.
Task agreed_reduce(Rounds& rounds, Operand input, Operand output, int root, const MpiReduction& reduction) {
  std::int64_t leaves = reduction.must_leave(input);
  Vote vote(rounds, {&leaves, 1});
  co_await until([&] { return vote.step(); });
  if (leaves) rounds.note(CallOutcome::left);
  if (rounds.outcome() != CallOutcome::left) co_await reduce(rounds, input, output, root, reduction);
}

}  // namespace

Task ReduceOperation::begin(Hierarchy& hierarchy) {
  UserBlocks& input = input_ ? *input_ : *output_;
  return reduce_of(hierarchy, input.of(0), output_ ? output_->of(0) : Operand(), root_, reduction_, pipeline);
}

Task GatherOperation::begin(Hierarchy& hierarchy) {
  UserBlocks* const all = all_ ? &*all_ : nullptr;
  if (all && own_) copy(own_->of(0), all->of(hierarchy.rank()), hierarchy.staging(), Hierarchy::staging_bytes);
  const Operand own = own_ ? own_->of(0) : all->of(hierarchy.rank());
  return gather_of(hierarchy, EqualOperands(all, own, hierarchy.rank(), block_bytes_), root_, pipeline);
}

Task ScatterOperation::begin(Hierarchy& hierarchy) {
  UserBlocks* const all = all_ ? &*all_ : nullptr;
  if (all && own_) copy(all->of(hierarchy.rank()), own_->of(0), hierarchy.staging(), Hierarchy::staging_bytes);
  const Operand own = own_ ? own_->of(0) : all->of(hierarchy.rank());
  return scatter_of(hierarchy, EqualOperands(all, own, hierarchy.rank(), block_bytes_), root_, pipeline);
}

Task AllgatherOperation::begin(Hierarchy& hierarchy) {
  if (own_) copy(own_->of(0), all_.of(hierarchy.rank()), hierarchy.staging(), Hierarchy::staging_bytes);
  return allgather(hierarchy, all_, cache, pipeline);
}

Task BroadcastOperation::begin(Hierarchy& hierarchy) { return bcast(hierarchy, data_.of(0), root_, pipeline); }

Task ReduceScatterOperation::begin(Hierarchy& hierarchy) {
  const Operand output = kept_.place(output_.of(0), input_.of(hierarchy.rank()));
  return reduce_scatter_of(hierarchy, input_, output, reduction_, pipeline);
}

void ReduceScatterOperation::finish() noexcept {
  kept_.deliver(output_.of(0));
  output_.complete();
}

Task AllgatherOperation::begin(Rounds& rounds) {
  return allgather(rounds, own_ ? own_->of(0) : all_.of(rounds.rank()), all_);
}

Task BroadcastOperation::begin(Rounds& rounds) { return bcast(rounds, data_.of(0), root_); }

Task GatherOperation::begin(Rounds& rounds) {
  const UserBlocks* const all = all_ ? &*all_ : nullptr;
  return gather(rounds, own_ ? own_->of(0) : all->of(rounds.rank()), all, root_);
}

Task ScatterOperation::begin(Rounds& rounds) {
  const UserBlocks* const all = all_ ? &*all_ : nullptr;
  return scatter(rounds, all, own_ ? own_->of(0) : all->of(rounds.rank()), root_);
}

bool AllreduceOperation::fill() noexcept {
  if ((input_ && !input_->fill()) || !output_.fill()) return false;
  if (!in_vain_ || input_) return true;
  const Operand both = output_.of(0);
  lease_ = BufferLease(runtime().pool, both.bytes());
  // The pool has a limit, and the others take part already.
  if (!lease_) memory_.reset(new (std::nothrow) std::byte[static_cast<std::size_t>(both.bytes())]);
  kept_ = lease_ ? lease_.data() : memory_.get();
  if (kept_) both.read(kept_, 0, both.bytes());
  return kept_ != nullptr;
}

void AllreduceOperation::finish() noexcept {
  if (in_vain_) {
    const Operand result = output_.of(0);
    *in_vain_ = reduction_.depends_on_order(result.at(0), result.bytes());
    if (*in_vain_ && kept_) result.write(kept_, 0, result.bytes());
  }
  output_.complete();
}

Task AllreduceOperation::begin(Rounds& rounds) {
  UserBlocks& input = input_ ? *input_ : output_;
  // Every member waits for all others.
  if (reduction_.must_leave(input.of(0))) return rounds.note(CallOutcome::left), Task();
  return allreduce(rounds, input.of(0), output_.of(0), reduction_);
}

Task ReduceOperation::begin(Rounds& rounds) {
  UserBlocks& input = input_ ? *input_ : *output_;
  const Operand output = output_ ? output_->of(0) : Operand();
  return reduction_.leaves_nans() ? agreed_reduce(rounds, input.of(0), output, root_, reduction_)
                                  : reduce(rounds, input.of(0), output, root_, reduction_);
}

Task ReduceScatterOperation::begin(Rounds& rounds) {
  return reduce_scatter(rounds, input_, kept_.place(output_.of(0), input_.of(rounds.rank())), reduction_);
}

Task AllreduceOperation::begin(Hierarchy& hierarchy) {
  UserBlocks& input = input_ ? *input_ : output_;
  return allreduce_of(hierarchy, input.of(0), output_.of(0), reduction_, pipeline);
}

template <class Blocks>
Task AlltoallOperationOf<Blocks>::begin(Hierarchy& hierarchy) {
  return votes_ ? pairwise_alltoall(hierarchy, input_, output_) : alltoall(hierarchy, input_, output_, pipeline);
}

template <class Blocks>
Task AlltoallOperationOf<Blocks>::begin(Rounds& rounds) {
  return alltoall(rounds, input_, output_);
}

template class AlltoallOperationOf<UserBlocks>;
template class AlltoallOperationOf<TypedUserBlocks>;

}  // namespace bestride::inline interpose
