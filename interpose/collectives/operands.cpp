// SPDX-License-Identifier: Apache-2.0
#include "interpose/collectives/operands.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/plan_cache.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/runtime.hpp"

namespace bestride::inline interpose {
namespace {

/// The most elements per MPI_Pack call, whose counts and sizes are ints.
std::int64_t max_elements(std::int64_t element_bytes) noexcept {
  return std::max<std::int64_t>(1, (1 << 30) / std::max<std::int64_t>(1, element_bytes));
}

}  // namespace

ElementSize element_size(MPI_Datatype type) noexcept {
  if (const Predefined* known = predefined(type)) return {known->size, known->size};
  TypeEntry* entry = runtime().types.find(type);
  if (!entry && (!runtime().types.incomplete() || type == MPI_DATATYPE_NULL)) return {};  // uncommitted or invalid
  if (entry) {
    const TypeEntry::State state = entry->decoded_state();
    if (state != TypeEntry::State::opaque && state != TypeEntry::State::undecoded)
      return {entry->size(), entry->extent()};
  }
  // MPI is asked, because after an allocation failure the type may be unknown on this rank only.
  int size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (real.Type_size(type, &size) != MPI_SUCCESS || size < 0 ||
      real.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS)
    return {};
  return {size, extent};
}

MPI_Datatype leaf_of(MPI_Datatype type) noexcept {
  TypeEntry* entry = runtime().types.find(type);
  if (entry && entry->decoded_state() != TypeEntry::State::opaque) return entry->leaf();
  try {
    if (const auto decoded = decode(type, datatype_calls)) return decoded->leaf;
  } catch (...) {
  }
  return MPI_DATATYPE_NULL;
}

UserBlocks::UserBlocks(const void* buffer, std::span<const Range> blocks, MPI_Datatype type, Access access,
                       StagedBlocks& staged, int only)
    : UserBlocks(type, access) {
  operands_.reserve(blocks.size());
  std::byte* packed = staged.add(buffer, blocks, type, access, only);
  for (const Range& block : blocks)
    if (packed) {
      operands_.emplace_back(packed, block.length() * element_.packed);
      packed += operands_.back().bytes();
    } else {
      add(buffer, block.first, block.length());
    }
}

UserBlocks::UserBlocks(UserBlocks&& other) noexcept
    : type_(other.type_),
      own_type_(std::exchange(other.own_type_, MPI_DATATYPE_NULL)),
      element_(other.element_),
      predefined_(other.predefined_),
      access_(other.access_),
      counted_(std::move(other.counted_)),
      operands_(std::move(other.operands_)),
      by_mpi_(std::move(other.by_mpi_)) {}

UserBlocks::~UserBlocks() {
  if (own_type_ != MPI_DATATYPE_NULL && !runtime().ended()) real.Type_free(&own_type_);
}

const UserBlocks::Counted& UserBlocks::counted(std::int64_t count) {
  for (const Counted& known : counted_)
    if (known.count == count) return known;
  Counted made{count, {}, false};
  TypeEntry* entry = runtime().types.find(type_);
  if (entry && entry->decoded_state() == TypeEntry::State::contiguous) {
    made.shift = entry->element().offset();
    counted_.push_back(std::move(made));
    return counted_.back();
  }
  if (entry) entry->expect_reuse();
  made.plan = entry ? entry->plan(count) : PlanRef();
  made.by_mpi = !made.plan || !made.plan->layout() || (!made.plan->contiguous() && !made.plan->packer());
  counted_.push_back(std::move(made));
  return counted_.back();
}

void UserBlocks::add(const void* buffer, std::int64_t elements, std::int64_t count) {
  std::byte* place = static_cast<std::byte*>(const_cast<void*>(buffer)) + elements * element_.extent;
  const std::int64_t bytes = count * element_.packed;
  if (bytes == 0 || predefined_) {
    operands_.emplace_back(place, bytes);
    return;
  }
  const Counted& known = counted(count);
  if (known.by_mpi) {
    auto packed = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    operands_.emplace_back(packed.get(), bytes);
    by_mpi_.push_back({place, count, std::move(packed)});
    // The application may free its type during the operation.
    if (own_type_ == MPI_DATATYPE_NULL && real.Type_dup(type_, &own_type_) != MPI_SUCCESS) throw std::bad_alloc();
  } else if (known.plan) {
    if (known.plan->contiguous())
      operands_.emplace_back(place + known.plan->layout()->offset(), bytes);
    else
      operands_.emplace_back(place, *known.plan->packer());
  } else {
    operands_.emplace_back(place + known.shift, bytes);
  }
}

bool UserBlocks::fill() noexcept {
  if (access_ == Access::written) return true;
  for (MpiOrdered& block : by_mpi_) {
    const std::int64_t most = max_elements(element_.packed);
    for (std::int64_t first = 0; first < block.count; first += most) {
      const int count = static_cast<int>(std::min(most, block.count - first));
      int at = 0;
      if (real.Pack(block.place + first * element_.extent, count, own_type_,
                    block.packed.get() + first * element_.packed, static_cast<int>(count * element_.packed), &at,
                    MPI_COMM_SELF) != MPI_SUCCESS)
        return false;
    }
  }
  return true;
}

void UserBlocks::complete() noexcept {
  if (access_ == Access::read) return;
  const std::int64_t most = max_elements(element_.packed);
  for (MpiOrdered& block : by_mpi_)
    for (std::int64_t first = 0; first < block.count; first += most) {
      const int count = static_cast<int>(std::min(most, block.count - first));
      int at = 0;
      real.Unpack(block.packed.get() + first * element_.packed, static_cast<int>(count * element_.packed), &at,
                  block.place + first * element_.extent, count, own_type_, MPI_COMM_SELF);
    }
}

void TypedUserBlocks::add(const void* buffer, std::int64_t count, MPI_Datatype type, Access access,
                          StagedBlocks& staged) {
  const Range block{0, count};
  blocks_.emplace_back(buffer, std::span(&block, 1), count > 0 ? type : MPI_BYTE, access, staged);
}

bool TypedUserBlocks::fill() noexcept {
  return std::all_of(blocks_.begin(), blocks_.end(), [](UserBlocks& block) { return block.fill(); });
}

void TypedUserBlocks::complete() noexcept {
  for (UserBlocks& block : blocks_) block.complete();
}

}  // namespace bestride::inline interpose
