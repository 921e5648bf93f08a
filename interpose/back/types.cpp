// SPDX-License-Identifier: Apache-2.0
#include "interpose/back/types.hpp"

#include <new>
#include <utility>

#include "base/message.hpp"
#include "interpose/back/calls.hpp"
#include "interpose/back/fail.hpp"
#include "interpose/back/runtime.hpp"
#include "interpose/back/thread_cache.hpp"

namespace bestride {
namespace {

/// From how many bytes on the first use of a (type, count) is worth a decode and a plan (1 to 10 us). Smaller ones pay from
/// their second use on, so that types used once cost nothing.
constexpr std::int64_t plan_at_first_use = 8192;
/// Where senders count on us to receive packed: the least message that could be split (plan.cpp).
constexpr std::int64_t plan_at_first_use_promised = 1024;
/// Counts remembered per type; an older one makes room.
constexpr std::size_t plans_per_type = 64;

}  // namespace

bool needs_no_commit(MPI_Datatype type) noexcept {
  int integers = 0, addresses = 0, types = 0, combiner = 0;
  if (datatype_calls.get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return false;
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

void TypeEntry::decode_locked() noexcept {
  if (state_.load(std::memory_order_relaxed) != State::undecoded) return;
  State state = State::opaque;
  try {
    if (std::optional<DecodedType> decoded = fail_here(FailPoint::decode) ? std::nullopt : decode(handle_, datatype_calls)) {
      decoded_ = std::move(*decoded);
      const Layout& layout = *decoded_.layout;
      if (decoded_.leaf != MPI_DATATYPE_NULL) {
        int size = 0;
        if (datatype_calls.size(decoded_.leaf, &size) == MPI_SUCCESS && size > 0) leaf_size_ = size;
        else decoded_.leaf = MPI_DATATYPE_NULL;
      }
      state = layout.size() == 0                                        ? State::empty
              : layout.contiguous() && layout.size() == decoded_.extent ? State::contiguous
                                                                        : State::useful;
      const std::int64_t from = runtime().respell_contiguous_from();
      if (state == State::contiguous && leaf_size_ != 0 && from < std::numeric_limits<std::int64_t>::max())
        respell_from_.store((from + layout.size() - 1) / layout.size(), std::memory_order_relaxed);
    }
  } catch (...) {
    say_once("decode", "no memory to decode a datatype; its calls are left to the MPI library");
  }
  state_.store(state, std::memory_order_release);
}

TypeEntry::State TypeEntry::decoded_state() noexcept {
  if (state() == State::undecoded) {
    const std::lock_guard lock(mutex_);
    decode_locked();
  }
  return state();
}

bool TypeEntry::seen_before(std::int64_t count) noexcept {
  for (const std::int64_t each : seen_)
    if (each == count) return true;
  seen_[next_seen_++ % (sizeof seen_ / sizeof seen_[0])] = count;
  return false;
}

PlanRef TypeEntry::plan(std::int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  for (const Counted& each : plans_)
    if (each.count == count) return each.plan;
  int size = 0;
  const std::int64_t at_first_use = runtime().promises_to_receive_packed() ? plan_at_first_use_promised : plan_at_first_use;
  if (!runtime().options().forced && !reused_.load(std::memory_order_relaxed) && datatype_calls.size(handle_, &size) == MPI_SUCCESS && size >= 0 &&
      count < at_first_use / (size + 1) && !seen_before(count))
    return {};
  decode_locked();
  if (leave_alone() && count < respell_from()) return {};
  try {
    if (fail_here(FailPoint::plan)) throw std::bad_alloc();
    PlanRef plan(new Plan(counted(decoded_, count), decoded_.leaf, leaf_size_, decoded_.unit_bytes));
    if (plans_.size() < plans_per_type) {
      plans_.push_back({count, plan});
    } else {
      plans_[oldest_] = {count, plan};
      oldest_ = (oldest_ + 1) % plans_per_type;
    }
    return plan;
  } catch (...) {
    say_once("plan", "no memory to plan a datatype's messages; they are left to the MPI library");
    return {};
  }
}

LayoutPtr TypeEntry::layout(std::int64_t count) noexcept try {
  const State state = decoded_state();
  if (state == State::opaque) return nullptr;
  if (count == 1 || state == State::empty) return decoded_.layout;
  if (state == State::contiguous) return counted(decoded_, count);
  expect_reuse();
  Plan* plan = find_plan(*this, count);
  return plan && plan->layout() ? plan->layout() : counted(decoded_, count);
} catch (...) {
  return nullptr;
}

void TypeEntry::retire() noexcept {
  // Most types are freed without ever having had a plan: then there is nothing to lock for.
  if (state() == State::undecoded) return;
  const std::lock_guard lock(mutex_);
  for (Counted& each : plans_) each.plan->retire();
  plans_.clear();
}

void TypeRegistry::insert(MPI_Datatype type, bool needs_no_commit) noexcept {
  auto* entry = fail_here(FailPoint::type) ? nullptr : new (std::nothrow) TypeEntry(type, next_id_.fetch_add(1), needs_no_commit);
  TypeEntry* stale = nullptr;
  if (!entry || !table_.insert(type, entry, &stale)) {
    delete entry;
    stale = table_.remove(type);
    lost_.store(true, std::memory_order_relaxed);
    say_once("type", "no memory to remember a datatype; its calls are left to the MPI library");
  }
  if (stale) {
    stale->retire();
    delete stale;
  }
}

void TypeRegistry::insert_predefined(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL || table_.find(type)) return;
  insert(type, true);
  if (TypeEntry* entry = table_.find(type)) entry->decoded_state();
}

void TypeRegistry::remove(MPI_Datatype type) noexcept {
  if (TypeEntry* entry = table_.remove(type)) {
    entry->retire();
    delete entry;
  }
}

void TypeRegistry::clear() noexcept {
  // Not deleted: another thread may, against MPI's rules, still be in a call. Kept in reach, so that a leak checker is silent.
  table_.clear([this](TypeEntry* entry) {
    entry->retire();
    entry->older_ = std::exchange(forgotten_, entry);
  });
}

}  // namespace bestride
