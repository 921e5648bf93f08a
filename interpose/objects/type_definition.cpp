// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/type_definition.hpp"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "base/float_environment.hpp"
#include "base/message.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"

namespace bestride::inline interpose {
namespace {

/// Plans kept per definition; when full, the oldest one is replaced.
constexpr std::size_t most_plans = 64;

}  // namespace

constinit std::atomic<std::uint64_t> TypeDefinition::last_id{0};

TypeDefinition::TypeDefinition(const TypeKey& key) : key_size_(key.words().size()) {
  if (key_size_ > short_key) long_key_ = std::make_unique<std::int64_t[]>(key_size_);
  std::copy_n(key.words().data(), key_size_, long_key_ ? long_key_.get() : short_key_);
}

bool TypeDefinition::has(const TypeKey& key) const noexcept {
  const std::int64_t* const words = long_key_ ? long_key_.get() : short_key_;
  return std::equal(key.words().begin(), key.words().end(), words, words + key_size_);
}

bool TypeDefinition::describes(MPI_Datatype type) const {
  const std::optional<DecodedType> other = datatype::decode(type, datatype_calls);
  if (!other || state() == State::opaque) return !other && state() == State::opaque;
  return other->layout == decoded_.layout && other->lower_bound == decoded_.lower_bound &&
         other->extent == decoded_.extent && other->leaf == decoded_.leaf && other->unit_bytes == decoded_.unit_bytes &&
         other->elements == decoded_.elements;
}

TypeDefinition::State TypeDefinition::decode(MPI_Datatype type) noexcept {
  const std::lock_guard lock(mutex_);
  if (state() != State::undecoded) return state();
  State state = State::opaque;
  try {
    if (std::optional<DecodedType> decoded =
            inject_failure(FailPoint::decode) ? std::nullopt : datatype::decode(type, datatype_calls)) {
      decoded_ = std::move(*decoded);
      const Layout& layout = *decoded_.layout;
      if (decoded_.leaf != MPI_DATATYPE_NULL) {
        int size = 0;
        if (datatype_calls.size(decoded_.leaf, &size) == MPI_SUCCESS && size > 0)
          leaf_size_ = size;
        else
          decoded_.leaf = MPI_DATATYPE_NULL;
      }
      state = layout.size() == 0                                        ? State::empty
              : layout.contiguous() && layout.size() == decoded_.extent ? State::contiguous
                                                                        : State::useful;
    }
  } catch (...) {
    warn_once("decode", "no memory to decode a datatype; its calls are left to the MPI library");
  }
  state_.store(state, std::memory_order_release);
  return state;
}

PlanRef TypeDefinition::find_locked(std::int64_t count) const noexcept {
  for (const Counted& each : plans_)
    if (each.count == count) return each.plan;
  return {};
}

PlanRef TypeDefinition::find(std::int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  return find_locked(count);
}

PlanRef TypeDefinition::make(std::int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  if (PlanRef known = find_locked(count)) return known;
  try {
    if (inject_failure(FailPoint::plan)) throw std::bad_alloc();
    const FloatEnvironment floats;  // of the shape's logarithms
    PlanRef plan(new Plan(counted(decoded_, count), decoded_.leaf, leaf_size_, decoded_.unit_bytes));
    if (plans_.size() < most_plans) {
      plans_.push_back({count, plan});
    } else {
      plans_[oldest_] = {count, plan};
      oldest_ = (oldest_ + 1) % most_plans;
    }
    return plan;
  } catch (...) {
    warn_once("plan", "no memory to plan a datatype's messages; they are left to the MPI library");
    return {};
  }
}

bool TypeDefinition::seen_before(std::int64_t count, SeenBy by) noexcept {
  const std::lock_guard lock(mutex_);
  Seen& seen = seen_[static_cast<int>(by)];
  for (const std::int64_t each : seen.counts)
    if (each == count) return true;
  seen.counts[seen.next++ % std::size(seen.counts)] = count;
  return false;
}

std::shared_ptr<TypeDefinition> TypeDefinitions::of(MPI_Datatype type, std::int64_t* arguments) noexcept try {
  const std::optional<TypeKey> key = TypeKey::of(type, datatype_calls, arguments);
  if (!key && arguments) return nullptr;
  if (!key) return std::make_shared<TypeDefinition>();
  std::shared_ptr<TypeDefinition> replaced;  // released without the lock
  const std::lock_guard lock(mutex_);
  if (!slots_) slots_ = std::make_unique<Slot[]>(1u << slots_log);
  const std::uint64_t hash = key->hash();
  Slot& slot = slots_[hash >> (64 - slots_log)];
  if (slot.definition && slot.hash == hash && slot.definition->has(*key) &&
      slot.definition->state() != TypeDefinition::State::opaque)
    return slot.definition;
  auto made_now = std::make_shared<TypeDefinition>(*key);
  slot.hash = hash;
  replaced = std::exchange(slot.definition, std::move(made_now));
  return slot.definition;
} catch (...) {
  return nullptr;
}

void TypeDefinitions::drop_unused() noexcept {
  const std::lock_guard lock(mutex_);
  for (unsigned i = 0; slots_ && i < 1u << slots_log; ++i)
    if (slots_[i].definition.use_count() == 1) slots_[i].definition.reset();
}

void TypeDefinitions::clear() noexcept {
  std::unique_ptr<Slot[]> slots;
  const std::lock_guard lock(mutex_);
  slots.swap(slots_);
}

}  // namespace bestride::inline interpose
