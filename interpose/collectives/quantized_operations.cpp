// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/quantized_operations.hpp"

#include <new>

#include "base/message.hpp"
#include "collectives/cache/quantized_allgather.hpp"
#include "collectives/quantized/quantized_collectives.hpp"
#include "interpose/collectives/comm_collectives.hpp"
#include "interpose/collectives/job.hpp"
#include "interpose/collectives/reduction_order.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// Bits that the user has requested for this communicator; 0: none.
int bits_asked(const CommEntry& entry) noexcept {
  const Job* all = job();
  const int hint = collectives_of(entry).hints.quantize;
  const int bits = !all ? 0 : hint != CommHints::none ? hint : all->settings.quantize;
  return entry.size() <= max_quantized_ranks && !collectives_of(entry).on_one_node ? bits : 0;
}

std::optional<NumberFormat> format_of(const CommEntry& entry, const Predefined* basic) noexcept {
  if (!basic) return std::nullopt;
  const int hint = collectives_of(entry).hints.format;
  if (basic->kind == NumberKind::floating && basic->size == 4) return NumberFormat::float32;
  if (basic->kind == NumberKind::floating && basic->size == 8) return NumberFormat::float64;
  if (basic->kind == NumberKind::integer && basic->size == 2 && hint >= 0) return static_cast<NumberFormat>(hint);
  return std::nullopt;
}

std::optional<Codes> codes_of(int bits, std::optional<NumberFormat> format) noexcept {
  if (!format) return std::nullopt;
  if (runtime().locality().rank == 0)
    log_info_once(
        "quantized",
        "allgathers and sums of floating-point numbers between nodes are approximate, as BESTRIDE_QUANTIZE or an "
        "info key asks");
  return Codes{*format, CodeBits::int8, bits == 4 ? CodeBits::int4 : CodeBits::int8};
}

}  // namespace

std::optional<Codes> quantized_gather(CommEntry& entry, MPI_Datatype type) noexcept {
  const int bits = bits_asked(entry);
  if (bits == 0) return std::nullopt;
  const Predefined* basic = predefined(type);
  if (!basic) basic = predefined(leaf_of(type));
  return codes_of(bits, format_of(entry, basic));
}

std::optional<Codes> quantized_sum(CommEntry& entry, MPI_Op op, MPI_Datatype type) noexcept {
  const int bits = bits_asked(entry);
  const Predefined* basic = bits ? predefined(type) : nullptr;
  if (!basic) return std::nullopt;
  // MPI_SUM of integers is exact, so an operation on integers that is limited to one order is user-defined.
  const bool sum = basic->kind == NumberKind::floating
                       ? op == MPI_SUM
                       : reassociation_of(op, type) == Reassociation::in_one_order_in_the_call;
  return sum ? codes_of(bits, format_of(entry, basic)) : std::nullopt;
}

Task QuantizedAllgather::begin(Hierarchy& hierarchy) {
  const Operand own = own_ ? own_->of(0) : all_.of(hierarchy.rank());
  if (cache)
    return cached_quantized_allgather(hierarchy, own, all_, codes_.format, codes_.gathered, cache->table, cache->arena,
                                      pipeline);
  return quantized_allgather(hierarchy, own, all_, codes_.format, codes_.gathered, pipeline);
}

Task QuantizedReduceScatter::begin(Hierarchy& hierarchy) {
  const Operand output = kept_.place(output_.of(0), input_.of(hierarchy.rank()));
  return quantized_reduce_scatter(hierarchy, input_, output, codes_.format, codes_.added, pipeline);
}

void QuantizedReduceScatter::finish() noexcept {
  kept_.deliver(output_.of(0));
  output_.complete();
}

Task QuantizedAllreduce::begin(Hierarchy& hierarchy) {
  UserBlocks& input = input_ ? *input_ : output_;
  return quantized_allreduce(hierarchy, input.of(0), output_.of(0), codes_.format, codes_.added, codes_.gathered,
                             pipeline);
}

}  // namespace bestride::inline interpose
