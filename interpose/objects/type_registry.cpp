// SPDX-License-Identifier: Apache-2.0
#include "interpose/objects/type_registry.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/message.hpp"
#include "datatype/contents.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/functions.hpp"
#include "interpose/objects/plan_cache.hpp"
#include "interpose/objects/runtime.hpp"
#include "interpose/objects/spare_memory.hpp"

namespace bestride::inline interpose {
namespace {

/// Message size in bytes from which the first use of a (type, count) is worth decoding and planning (1 to 10 us).
/// Smaller ones get a plan at their second use, so that types used once cost nothing.
constexpr std::int64_t plan_at_first_use = 65536;
/// Message size in bytes from which the definition of a type is looked up at its first use: that takes 0.13 to 0.23 us,
/// more than a smaller message can gain.
constexpr std::int64_t define_at_first_use = 512;

/// A type whose constructors have too many arguments for a key, such as a long index list, is decoded once its messages
/// have moved this many bytes for each argument, and at this use at the latest (docs/decisions/new_index_lists.md).
constexpr std::int64_t decode_from_bytes_an_argument = 512;
constexpr std::int64_t decode_from_ns_an_argument = 90;
constexpr int decode_at_use = 64;

constinit SpareMemory spare_type;

/// A communicator of this rank alone that returns errors; MPI_COMM_NULL if it can't be made. Not by MPI_Comm_dup or
/// MPI_Comm_split: another thread may be in a collective call on MPI_COMM_SELF, and a duplicate would run the
/// application's attribute copy functions.
MPI_Comm make_comm_for_asking() noexcept {
  static constinit std::atomic<int> next_tag{23411};  // two threads must not use the same tag at the same time
  MPI_Group self = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  if (real.Comm_group(MPI_COMM_SELF, &self) != MPI_SUCCESS) return MPI_COMM_NULL;
  const int error = real.Comm_create_group(MPI_COMM_SELF, self, next_tag.fetch_add(1), &comm);
  real.Group_free(&self);
  if (error != MPI_SUCCESS) return MPI_COMM_NULL;
  real.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

}  // namespace

void* TypeEntry::operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  if (inject_failure(FailPoint::type)) return nullptr;
  void* const kept = spare_type.take();
  return kept ? kept : std::malloc(bytes);
}

void TypeEntry::operator delete(void* entry) noexcept { std::free(spare_type.keep(entry)); }

int TypeEntry::bytes() const noexcept {
  std::int32_t known = bytes_.load(std::memory_order_relaxed);
  if (known == bytes_unknown) {
    int size = 0;
    // An entry exists only for a committed type, so the query can't raise an error.
    known = real.Type_size(handle_, &size) == MPI_SUCCESS && size >= 0 ? size : bytes_too_many;
    bytes_.store(known, std::memory_order_relaxed);
  }
  return known;
}

bool TypeEntry::define_locked() noexcept {
  if (!definition_) definition_ = runtime().definitions.of(handle_);
  if (!definition_) {
    warn_once("decode", "no memory to decode a datatype; its calls are left to the MPI library");
    return false;
  }
  definition_id_.store(definition_->id(), std::memory_order_release);
  return true;
}

void TypeEntry::decode_locked() noexcept {
  if (state_.load(std::memory_order_relaxed) != State::undecoded) return;
  const State state = define_locked() ? definition_->decode(handle_) : State::opaque;
  if (state == State::contiguous && leaf_size() != 0) {
    const std::int64_t from = runtime().respell_contiguous_from();
    if (from < std::numeric_limits<std::int64_t>::max())
      respell_from_.store((from + size() - 1) / size(), std::memory_order_relaxed);
  }
  serve_locked(state);
  state_.store(state, std::memory_order_release);
}

TypeEntry::State TypeEntry::decoded_state() noexcept {
  if (state() == State::undecoded) {
    const std::lock_guard lock(mutex_);
    decode_locked();
  }
  return state();
}

bool TypeEntry::at_once() const noexcept {
  return runtime().options().forced || reused_.load(std::memory_order_relaxed);
}

bool TypeEntry::small(std::int64_t count) noexcept {
  if (at_once() || bytes() < 0) return false;
  return count < plan_at_first_use / (std::int64_t{bytes()} + 1);
}

bool TypeEntry::worth_decoding(std::int64_t count) noexcept {
  std::int64_t bytes = 0;
  if (++uses_ >= decode_at_use || this->bytes() < 0 ||
      __builtin_mul_overflow(count, std::int64_t{this->bytes()}, &bytes))
    return true;
  if (!measured_ && context_) measured_ = runtime().served.measure(context_);
  if (measured_ && measured_->library_ns.load(std::memory_order_relaxed) / decode_from_ns_an_argument >= arguments_)
    return true;
  return __builtin_add_overflow(moved_, bytes, &moved_) || moved_ / decode_from_bytes_an_argument >= arguments_;
}

bool TypeEntry::define(std::int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  if (!definition_ && small(count) && count * bytes() < define_at_first_use &&
      std::exchange(first_count_, count) != count)
    return false;
  if (!definition_ && !at_once()) {
    if (arguments_ == 0) definition_ = runtime().definitions.of(handle_, &arguments_);
    if (arguments_ != 0 && !worth_decoding(count)) return false;
  }
  if (!define_locked()) return true;
  if (definition_->state() != State::undecoded) decode_locked();
  return true;
}

PlanRef TypeEntry::plan(std::int64_t count) noexcept {
  const std::lock_guard lock(mutex_);
  if (define_locked()) {
    if (PlanRef known = definition_->find(count)) {
      decode_locked();
      return known;
    }
    if (small(count) && first_count_ != count && !definition_->seen_before(count)) return {};
  }
  decode_locked();
  if (state() == State::opaque || (forward_only() && count < respell_from())) return {};
  return definition_->make(count);
}

LayoutPtr TypeEntry::layout(std::int64_t count) noexcept try {
  const State state = decoded_state();
  if (state == State::opaque) return nullptr;
  const DecodedType& decoded = definition_->decoded();
  if (count == 1 || state == State::empty) return decoded.layout;
  if (state == State::contiguous) return counted(decoded, count);
  expect_reuse();
  Plan* plan = find_plan(*this, count);
  return plan && plan->layout() ? plan->layout() : counted(decoded, count);
} catch (...) {
  return nullptr;
}

void TypeEntry::stop_serving() noexcept {
  // A persistent request may be started after its type was freed.
  if ((served() || measured_) && !reused_.load(std::memory_order_relaxed)) runtime().served.forget(context_);
}

void TypeEntry::serve_again() noexcept {
  const std::lock_guard lock(mutex_);
  serve_locked(state_.load(std::memory_order_relaxed));
}

void TypeEntry::serve_locked(State state) noexcept {
  // If it is not known where elements begin, a message can't be cut as the receiver's library expects.
  const bool possible =
      context_ && (state == State::useful || state == State::contiguous) && definition_->decoded().elements.known();
  const bool serves = possible && runtime().served.define(context_, definition_);
  if (!serves && measured_) runtime().served.forget(context_);
  measured_.reset();  // measured again, if it is still not decoded
  served_.store(serves, std::memory_order_relaxed);
}

void TypeEntry::set_context(void* context) noexcept {
  const std::lock_guard lock(mutex_);
  context_ = context;
  serve_locked(state_.load(std::memory_order_relaxed));
}

bool TypeEntry::is_current() noexcept try {
  const std::lock_guard lock(mutex_);
  if (!definition_ || definition_->state() == State::undecoded) {  // nothing was concluded from the construction yet
    definition_.reset();
    definition_id_.store(0, std::memory_order_relaxed);
    bytes_.store(bytes_unknown, std::memory_order_relaxed);
    first_count_ = 0;
    uses_ = 0;
    moved_ = 0;
    measured_.reset();
    arguments_ = 0;
    return true;
  }
  if (runtime().definitions.of(handle_) == definition_) return true;
  return definition_->describes(handle_);
} catch (...) {
  return false;
}

MPI_Comm TypeRegistry::comm_for_asking() noexcept {
  MPI_Comm comm = asking_comm_.load(std::memory_order_acquire);
  if (comm != MPI_COMM_NULL || !runtime().in_world()) return comm;
  comm = make_comm_for_asking();
  MPI_Comm other = MPI_COMM_NULL;
  if (comm != MPI_COMM_NULL && !asking_comm_.compare_exchange_strong(other, comm, std::memory_order_acq_rel)) {
    real.Comm_free(&comm);
    comm = other;
  }
  return comm;
}

bool TypeRegistry::asked_committed(MPI_Datatype type) noexcept {
  const MPI_Comm comm = comm_for_asking();
  if (comm == MPI_COMM_NULL) return true;
  char none = 0;
  int position = 0;
  return real.Pack(&none, 0, type, &none, 0, &position, comm) == MPI_SUCCESS;
}

void TypeRegistry::stop_asking() noexcept { asking_comm_.store(MPI_COMM_NULL, std::memory_order_release); }

void TypeRegistry::mark_incomplete() noexcept {
  incomplete_.store(true, std::memory_order_relaxed);
  warn_once("type", "no memory to remember a datatype; its calls are left to the MPI library");
}

void TypeRegistry::add(MPI_Datatype type, TypeEntry::Life life, std::int64_t handles, void* context) noexcept {
  auto* entry = new (std::nothrow) TypeEntry(type, ++last_id_, life, context);
  if (!entry) return mark_incomplete();
  entry->handles_ = handles;
  TypeEntry* replaced = nullptr;
  if (!table_.insert(type, entry, &replaced)) {
    delete entry;
    mark_incomplete();
  }
}

TypeEntry* TypeRegistry::current(MPI_Datatype type) noexcept {
  TypeEntry* entry = table_.find(type);
  if (!entry || entry->life_ != TypeEntry::Life::counted || entry->is_current())
    return entry ? entry : find_locked(type);
  table_.remove(type);
  delete entry;
  return nullptr;
}

std::vector<TypeRegistry::Uncommitted>::iterator TypeRegistry::uncommitted(MPI_Datatype type) noexcept {
  return std::find_if(uncommitted_.begin(), uncommitted_.end(),
                      [type](const Uncommitted& one) { return one.type == type; });
}

TypeEntry* TypeRegistry::find_locked(MPI_Datatype type) noexcept {
  if (!table_.find(type) && unused_.has(type)) {
    void* context = unused_.context(type);
    add(type, TypeEntry::Life::counted, 1, context);
    unused_.clear(type, &context);  // after that, so that another thread finds one or the other
  }
  return table_.find(type);
}

TypeEntry* TypeRegistry::find_unused(MPI_Datatype type) noexcept {
  const std::lock_guard lock(mutex_);
  return find_locked(type);
}

std::int64_t TypeRegistry::size_of_derived(MPI_Datatype type) noexcept {
  const TypeEntry* const entry = find(type);
  if (!entry) return 0;
  return std::max(entry->bytes(), 0);
}

void TypeRegistry::insert_entry(MPI_Datatype type, void* context) noexcept {
  const std::lock_guard lock(mutex_);
  if (TypeEntry* const known = current(type)) {
    if (context) known->set_context(context);
    return;
  }
  std::int64_t handles = 1;
  if (const auto known = uncommitted(type); known != uncommitted_.end()) {
    handles += known->handles;
    uncommitted_.erase(known);
    uncommitted_count_.store(uncommitted_.size(), std::memory_order_relaxed);
  }
  add(type, TypeEntry::Life::counted, handles, context);
}

void TypeRegistry::insert_permanent(MPI_Datatype type) noexcept {
  const std::lock_guard lock(mutex_);
  if (type != MPI_DATATYPE_NULL && !table_.find(type)) add(type, TypeEntry::Life::permanent, 1);
}

void TypeRegistry::insert_predefined(MPI_Datatype type) noexcept {
  if (type == MPI_DATATYPE_NULL) return;
  {
    const std::lock_guard lock(mutex_);
    if (table_.find(type)) return;
    add(type, TypeEntry::Life::needs_no_commit, 1);
  }
  if (TypeEntry* entry = table_.find(type)) entry->decoded_state();
}

bool TypeRegistry::count_known(MPI_Datatype type) noexcept {
  if (TypeEntry* entry = current(type))
    ++entry->handles_;
  else if (const auto known = uncommitted(type); known != uncommitted_.end())
    ++known->handles;
  else
    return false;
  return true;
}

void TypeRegistry::add_handle(MPI_Datatype type) noexcept {
  if (predefined(type) || is_pair_with_gaps(type)) return;
  {
    const std::lock_guard lock(mutex_);
    if (count_known(type)) return;
  }
  // Without the lock: making the communicator may run callbacks of the application.
  const bool committed = asked_committed(type);
  const std::lock_guard lock(mutex_);
  if (count_known(type)) return;  // by another thread meanwhile
  if (committed) return add(type, TypeEntry::Life::counted, 1);
  try {
    uncommitted_.push_back({type, 1});
    uncommitted_count_.store(uncommitted_.size(), std::memory_order_relaxed);
  } catch (...) {
    mark_incomplete();
  }
}

TypeRegistry::Released TypeRegistry::release(MPI_Datatype type) noexcept {
  const std::lock_guard lock(mutex_);
  Released released{.type = type};
  if (TypeEntry* entry = table_.find(type)) {
    if (entry->life_ != TypeEntry::Life::counted) return released;
    if (--entry->handles_ > 0)
      released.counted = true;
    else
      released.entry = table_.remove(type);
    if (released.entry) released.entry->stop_serving();  // before another type of another thread may get the context
  } else if (const auto known = uncommitted(type); known != uncommitted_.end()) {
    if (--known->handles == 0) uncommitted_.erase(known);
    uncommitted_count_.store(uncommitted_.size(), std::memory_order_relaxed);
    released.counted = true;
  }
  return released;
}

void TypeRegistry::freed(const Released& released) noexcept { delete released.entry; }

void TypeRegistry::not_freed(const Released& released) noexcept {
  const std::lock_guard lock(mutex_);
  TypeEntry* entry = released.entry;
  if (released.counted) {
    if (TypeEntry* known = table_.find(released.type)) return void(++known->handles_);
    if (const auto known = uncommitted(released.type); known != uncommitted_.end()) return void(++known->handles);
    try {
      uncommitted_.push_back({released.type, 1});
      uncommitted_count_.store(uncommitted_.size(), std::memory_order_relaxed);
    } catch (...) {
      mark_incomplete();
    }
  } else if (entry) {
    entry->serve_again();
    entry->handles_ = 1;
    TypeEntry* replaced = nullptr;
    if (table_.insert(released.type, entry, &replaced)) return;
    delete entry;
    mark_incomplete();
  }
}

void TypeRegistry::clear() noexcept {
  const std::lock_guard lock(mutex_);
  // Not deleted: another thread may, against MPI's rules, still be in a call. Kept reachable, so that leak checkers do
  // not report them.
  table_.clear([this](TypeEntry* entry) { entry->older_ = std::exchange(forgotten_, entry); });
  uncommitted_.clear();
  uncommitted_count_.store(0, std::memory_order_relaxed);
  unused_.clear();
}

}  // namespace bestride::inline interpose
