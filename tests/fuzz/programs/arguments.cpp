// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/programs/arguments.hpp"

#include <algorithm>

#include "tests/fuzz/programs/common.h"

namespace bestride::fuzz {
namespace {

/// The same type at an absolute address, for MPI_BOTTOM. Drops `relative`.
Handle at_address(Caller& caller, Handle relative, const void* address) {
  Handle result;
  CALL(caller, Type_create_hindexed_block, 1, 1, Address(address), relative.h, New{&result.h, "t"});
  CALL(caller, Type_commit, Gone{&result.h});
  result.owned = true;
  result.parts = relative.parts + 1;
  ++caller.types_alive;
  if (relative.owned) {
    caller.types_alive += relative.parts;
    drop(caller, relative);
  }
  return result;
}

}  // namespace

std::int64_t Side::bytes() const {
  std::int64_t sum = 0;
  for (const Shape& block : blocks) sum += block.bytes();
  return sum;
}

void Side::measure() {
  low = high = 0;
  for (std::size_t k = 0; k < blocks.size(); ++k) {
    low = std::min(low, at[k] + blocks[k].low(blocks[k].count));
    high = std::max(high, at[k] + blocks[k].high(blocks[k].count));
  }
}

void Side::shift(std::int64_t bytes) {
  for (std::int64_t& one : at) one += bytes;
  low += bytes, high += bytes;
}

void Layout::join(Blocks out_blocks, Blocks in_blocks) {
  const bool moves_in = displaced(in_blocks);
  Side &moved = moves_in ? in : out, &other = moves_in ? out : in;
  if (moved.blocks.empty() || other.blocks.empty()) return;
  const bool typed = (moves_in ? in_blocks : out_blocks) == Blocks::typed;
  const std::int64_t unit = typed ? 16 : moved.blocks[0].facts.extent;
  if (unit <= 0) return;
  moved.shift((other.high - moved.low + unit - 1) / unit * unit);
  one_base = true;
}

void Arguments::set(Context& context, const Spelling& spelling, const Side& side, Buffer* memory, const Given& given) {
  const bool empty = side.bytes() == 0, typed = given.blocks == Blocks::typed;
  const bool bottom = memory && !empty && given.derived && spelling.is(Way::bottom, given.out);
  const std::int64_t far = bottom || !displaced(given.blocks) ? 0 : given.far;
  std::vector<std::int64_t> all_counts, all_at, all_types;
  for (std::size_t k = 0; k < side.blocks.size(); ++k) {
    const Shape& block = side.blocks[k];
    if (k == 0 || typed) {
      if (typed && block.count == 0 && given.null_type && spelling.is(Way::null_type, given.out)) {
        handles_.push_back({});
      } else {
        handles_.push_back(build(context, block.type, true, given.derived && context.own.chance(20)));
        if (bottom && (!typed || block.count > 0)) handles_.back() = at_address(context, handles_.back(), memory->at());
      }
    }
    type = handles_.back().h;
    count = block.count;
    all_types.push_back(type);
    all_counts.push_back(count);
    const std::int64_t bytes = side.at[k] - far;
    all_at.push_back(typed ? bytes : block.facts.extent == 0 ? 0 : bytes / block.facts.extent);
  }
  const bool null = spelling.is(Way::empty_null, given.out);
  if (side.blocks.empty()) {
    type = given.null_type && spelling.is(Way::null_type, given.out) ? MPI_DATATYPE_NULL : MPI_INT;
    if (!null) all_counts.push_back(0), all_at.push_back(0), all_types.push_back(MPI_INT);
  }
  const List::Element wide_at = List::Element::address;
  counts.set(all_counts, given.wide ? List::Element::count : List::Element::integer);
  at.set(all_at, given.wide || (typed && given.byte_aints) ? wide_at : List::Element::integer);
  types.set(all_types, List::Element::integer);
  if (bottom || (null && empty))
    buffer = {MPI_BOTTOM, 0};
  else
    buffer = {memory ? memory->at() : nullptr, far};
}

void Arguments::make_unused(const Spelling& spelling, bool out) {
  Random details = spelling.details(Way::unused, out);
  const void* const pointer = details.chance(50) ? nullptr : reinterpret_cast<const void*>(1);
  buffer = {pointer, 0};
  count = details.chance(50) ? -5 : 0;
  type = MPI_DATATYPE_NULL;
  for (List* list : {&counts, &at, &types}) list->set_pointer(pointer);
}

void Arguments::free_types(Context& context) {
  for (Handle& handle : handles_) drop(context, handle);
}

std::int64_t far_of(const Spelling& spelling, bool out, std::int64_t unit) {
  if (!spelling.is(Way::far_base, out)) return 0;
  Random details = spelling.details(Way::far_base, out);
  const std::int64_t units = details.between(1, std::max<std::int64_t>(2, 1'000'000 / unit));
  return (details.chance(50) ? units : -units) * unit;
}

void be_late(Context& context, const Spelling& spelling) {
  if (!spelling.is(Way::late)) return;
  const int rounds = static_cast<int>(spelling.details(Way::late).between(1, 300)) * 300;  // about 1 us each
  context.line("fuzz_compute(" + std::to_string(rounds) + ");");
  fuzz_compute(rounds);
}

}  // namespace bestride::fuzz
