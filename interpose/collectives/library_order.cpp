// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/library_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "base/float_environment.hpp"
#include "base/mapped_allocator.hpp"
#include "base/message.hpp"
#include "collectives/core/order_probe.hpp"
#include "interpose/collectives/dispatch.hpp"
#include "interpose/collectives/maximum.hpp"
#include "interpose/collectives/operations.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/predefined_types.hpp"

namespace bestride::inline interpose {
namespace {

constexpr std::int64_t most_bytes = 8 << 20;  ///< of a sum whose order is found out; this takes twice as much memory
constexpr int numbers_per_part = 128, most_trials = 64;

/// The reduction of test numbers, by the MPI library and over a route.
class Trial {
 public:
  /// May throw std::bad_alloc.
  Trial(const ReductionCall& call, ReductionTree::Form form, MPI_Comm comm, int rank, int ranks)
      : call_(call),
        comm_(comm),
        rank_(rank),
        ranks_(ranks),
        bytes_(call.count * predefined(call.type)->size),
        own_(static_cast<std::size_t>(bytes_)),
        sum_(static_cast<std::size_t>(bytes_)) {
    if (inject_failure(FailPoint::order)) throw std::bad_alloc();
    // In place: the operation adds to `own_`.
    StagedBlocks staged(comm);
    const Range all{0, call.count};
    UserBlocks numbers(own_.data(), {&all, 1}, call.type, Access::both, staged);
    MpiReduction reduction(call.op, call.type, ReductionTree(form, ranks));
    if (call.what == Collective::allreduce)
      operation_ = std::make_unique<AllreduceOperation>(std::nullopt, std::move(numbers), std::move(reduction));
    else if (receives())
      operation_ = std::make_unique<ReduceOperation>(std::nullopt, std::move(numbers), call.root, std::move(reduction));
    else
      operation_ = std::make_unique<ReduceOperation>(std::move(numbers), std::nullopt, call.root, std::move(reduction));
    operation_->staged = std::move(staged);
    operation_->comm = comm;
  }
  /// True if the bits are the same, or this rank has no result.
  bool agrees(const Route& route, int number) noexcept {
    if (floating_bytes(call_.type) == 8)
      fill_order_probe(reinterpret_cast<double*>(own_.data()), bytes_ / 8, rank_, ranks_, number);
    else
      fill_order_probe(reinterpret_cast<float*>(own_.data()), bytes_ / 4, rank_, ranks_, number);
    const int count = static_cast<int>(call_.count);
    const int error = call_.what == Collective::allreduce
                          ? real.Allreduce(own_.data(), sum_.data(), count, call_.type, call_.op, comm_)
                          : real.Reduce(own_.data(), sum_.data(), count, call_.type, call_.op, call_.root, comm_);
    operation_->pipeline = route.pipeline;
    const bool carried_out = run_to_end(route, *operation_);
    if (route.one_node) route.one_node->end_operation();
    return error == MPI_SUCCESS && carried_out &&
           (!receives() || std::memcmp(own_.data(), sum_.data(), static_cast<std::size_t>(bytes_)) == 0);
  }

 private:
  bool receives() const noexcept { return call_.what == Collective::allreduce || rank_ == call_.root; }

  const ReductionCall& call_;
  MPI_Comm comm_;
  int rank_, ranks_;
  std::int64_t bytes_;
  std::vector<std::byte, MappedAllocator<std::byte>> own_, sum_;
  std::unique_ptr<Operation> operation_;
};

/// The number of reductions after which each part of the result that an algorithm may treat separately, a share of one
/// rank, has had enough numbers: each shows a different order with a probability of 0.08 or more.
int trials(std::int64_t count, int ranks) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>((numbers_per_part * ranks + count - 1) / count, 1, most_trials));
}

bool adds_as(ReductionTree::Form form, const ReductionCall& call, const Route& route, MPI_Comm comm, int rank,
             int ranks) noexcept {
  const FloatEnvironment floats;
  before_library_collective(comm);
  std::unique_ptr<Trial> trial;
  try {
    trial = std::make_unique<Trial>(call, form, comm, rank, ranks);
  } catch (...) {
  }
  if (!on_all_members(comm, trial != nullptr)) return false;
  bool same = true;
  for (int i = 0; i < trials(call.count, ranks); ++i) same &= trial->agrees(route, i);
  return on_all_members(comm, same);
}

/// `size`: of an element.
bool is_short_sum(const ReductionCall& call, std::int64_t size) noexcept {
  return call.op == MPI_SUM && call.count <= most_bytes / size;
}

}  // namespace

bool finds_sum_order(const ReductionCall& call) noexcept {
  return floating_bytes(call.type) != 0 && is_short_sum(call, predefined(call.type)->size);
}

SumOrder* find_sum_order(CommEntry& entry, const ReductionCall& call) noexcept {
  const std::int64_t bytes = floating_bytes(call.type);
  if (bytes == 0) return nullptr;
  const std::int64_t size = predefined(call.type)->size;
  if (!is_short_sum(call, size)) return nullptr;
  for (SumOrder& order : collectives_of(entry).sum_orders) {
    if (order.count == 0)
      order = {call.count,
               call.root,
               call.what,
               static_cast<std::uint8_t>(bytes),
               size > bytes,
               0,
               SumOrder::Answer::unknown,
               {}};
    if (order.count != call.count || order.root != call.root || order.what != call.what ||
        order.number_bytes != bytes || order.complex != (size > bytes))
      continue;
    if (order.answer == SumOrder::Answer::different) return nullptr;
    if (order.calls < job()->settings.calls_before_order) return ++order.calls, nullptr;
    return order.asking.asks() ? &order : nullptr;
  }
  return nullptr;
}

bool same_sum_order(SumOrder& order, const ReductionCall& call, const Route& route, MPI_Comm comm, int rank,
                    int ranks) noexcept {
  if (order.answer == SumOrder::Answer::unknown) {
    // For 2^a - 2^b ranks both forms are the same tree.
    const bool two_forms = !std::has_single_bit(static_cast<unsigned>(ranks + (ranks & -ranks)));
    const auto adds = [&](ReductionTree::Form form) { return adds_as(form, call, route, comm, rank, ranks); };
    order.answer = adds(ReductionTree::Form::balanced)              ? SumOrder::Answer::balanced
                   : two_forms && adds(ReductionTree::Form::paired) ? SumOrder::Answer::paired
                                                                    : SumOrder::Answer::different;
    const bool same = order.answer != SumOrder::Answer::different;
    if (rank == 0)
      log_info_once(
          same ? "order.same" : "order.different",
          "sums of %lld floating-point elements on %d ranks: the MPI library adds in %s order, so they are %s",
          static_cast<long long>(call.count), ranks, same ? "the same" : "another",
          same ? "no longer left to it" : "left to it");
  }
  return order.answer != SumOrder::Answer::different;
}

ReductionTree tree_of(const SumOrder& order, int ranks) noexcept {
  return {order.answer == SumOrder::Answer::paired ? ReductionTree::Form::paired : ReductionTree::Form::balanced,
          ranks};
}

}  // namespace bestride::inline interpose
