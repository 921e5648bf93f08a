// SPDX-License-Identifier: Apache-2.0
#pragma once
// TypeRegistry: maps a datatype handle to what is known of the type, with one lock-free lookup per call.
//
// It holds every committed derived type (MPI_Type_commit, a duplicate of a committed or predefined type,
// MPI_Type_create_f90_*, the types of MPI_File_get_view) and the pair types, which are predefined but have gaps. Every
// other handle is predefined, uncommitted or invalid, and its call goes to MPI untouched, so MPI reports the error of
// an uncommitted type.
//
// References are counted as MPI counts handles: one for a committed type, one more for each time MPI_Type_get_contents
// returns its handle, one less for each MPI_Type_free. The last one removes the entry. If a count is too high (an
// MPI_Type_free that was not intercepted), correct programs don't see it: at a commit of a handle that has an entry,
// the entry is kept only if the type is constructed as the entry says. Only an uncommitted type that has the handle by
// then is taken for a committed one. If MPI_Type_get_contents returns a type whose handles had all been freed, packing
// zero elements tells whether it is committed.
//
// Alternatives considered: an attribute of each type, which costs 50 to 100 ns per type (a solver that makes a type for
// each message has 77,000 of them in 1.3 s); and the delete callback of such an attribute, which runs exactly at the
// end of the type (quirks::type_callbacks_run_in_progress).
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/mpi/handle_table.hpp"
#include "interpose/objects/committed_marks.hpp"
#include "interpose/objects/plan.hpp"
#include "interpose/objects/predefined_types.hpp"
#include "interpose/objects/served_types.hpp"
#include "interpose/objects/type_definition.hpp"

namespace bestride::inline interpose {

/// One committed type, from its commit to its free. Decoded at the first use that may gain by it.
///
/// The members that a forwarded call reads are in the first 40 bytes: a stencil code sweeps its domain between two
/// exchanges, which evicts this object from the caches, and each cache line costs such a call 50 to 100 ns.
class TypeEntry {
 public:
  using State = TypeDefinition::State;
  /// Lifetime of the entry.
  enum class Life : std::uint8_t {
    counted,          ///< until its last handle is freed
    permanent,        ///< it can't be freed
    needs_no_commit,  ///< predefined; inserted because this rank uses the entry, so other ranks may not have one
  };
  TypeEntry(MPI_Datatype handle, std::uint64_t id, Life life, void* context = nullptr,
            State state = State::undecoded) noexcept
      : handle_(handle), life_(life), state_(state), id_(id), context_(context) {}
  TypeEntry(const TypeEntry&) = delete;
  TypeEntry& operator=(const TypeEntry&) = delete;

  static void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept;
  static void operator delete(void* entry) noexcept;

  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// True if no message of any count can gain, except by respelling contiguous bytes: see respell_from().
  bool forward_only() const noexcept { return state() > State::useful; }
  /// The least count for which respelling may pay off at some distance. INT64_MAX for a type that is not contiguous.
  std::int64_t respell_from() const noexcept { return respell_from_.load(std::memory_order_relaxed); }
  /// The distances at which messages of this kind and count are known to be left to MPI for any peer: bit d stands for
  /// Distance d.
  unsigned forwarded_at(std::int64_t count, CallKind kind) const noexcept {
    const std::uint64_t left = left_.load(std::memory_order_relaxed);
    return left >> left_bits == static_cast<std::uint64_t>(count) ? left >> left_shift(kind) & everywhere : 0;
  }
  static constexpr unsigned everywhere = (1u << distance_count) - 1;
  /// Records `distances` for forwarded_at(). Only the last count is kept.
  void leave(std::int64_t count, CallKind kind, unsigned distances) noexcept {
    if (count >> (63 - left_bits) != 0) return;
    const std::uint64_t known = left_.load(std::memory_order_relaxed), wanted = static_cast<std::uint64_t>(count);
    left_.store(
        (known >> left_bits == wanted ? known : wanted << left_bits) | std::uint64_t{distances} << left_shift(kind),
        std::memory_order_relaxed);
  }
  /// Unique in the process and, unlike the handle, never used again.
  std::uint64_t id() const noexcept { return id_; }
  /// TypeDefinition::id(); 0: the type has no definition yet.
  std::uint64_t definition_id() const noexcept { return definition_id_.load(std::memory_order_acquire); }
  MPI_Datatype handle() const noexcept { return handle_; }
  /// True if the fragments of its messages are packed and unpacked by the engine, wherever the library packs them.
  bool served() const noexcept { return served_.load(std::memory_order_relaxed); }
  bool needs_no_commit() const noexcept { return life_ == Life::needs_no_commit; }

  /// Bytes of one element, from the MPI library; negative: more than INT_MAX.
  int bytes() const noexcept;
  /// Looks the definition up for a use with `count` elements. False if that would take longer than a first message of
  /// so few bytes can gain.
  bool define(std::int64_t count) noexcept;
  /// The plan for `count` (> 0) elements; nullptr if there is no memory, or it is the first use of a small count (a
  /// plan pays off from the second use on, also of another type with the same construction), or one of the first uses
  /// of a type that takes long to decode. The caller's reference keeps the plan alive.
  PlanRef plan(std::int64_t count) noexcept;
  /// The layout of `count` (> 0) elements, whether or not it makes a call faster: for memory that MPI can't access.
  /// nullptr: opaque, or no memory.
  LayoutPtr layout(std::int64_t count) noexcept;
  /// Plans are worthwhile from the next use on, however small it is.
  void expect_reuse() noexcept { reused_.store(true, std::memory_order_relaxed); }
  /// Decodes the type if necessary. Not a hot path.
  State decoded_state() noexcept;
  /// Extent of one element in bytes. Only if decoded and not opaque.
  std::int64_t extent() const noexcept { return definition_->decoded().extent; }
  /// The only basic type and its size in bytes; the size is 0 if there are several. Only if decoded.
  MPI_Datatype leaf() const noexcept { return definition_ ? definition_->decoded().leaf : MPI_DATATYPE_NULL; }
  std::int64_t leaf_size() const noexcept { return definition_ ? definition_->leaf_size() : 0; }
  /// The layout of one element. Only if decoded and not opaque.
  const Layout& element() const noexcept { return *definition_->decoded().layout; }
  /// Size of one element in bytes, without gaps. Only if decoded and not opaque.
  std::int64_t size() const noexcept { return element().size(); }

 private:
  // The caller of these functions holds the mutex.
  /// False: no memory; the type is opaque then.
  bool define_locked() noexcept;
  void decode_locked() noexcept;
  /// Planned at the first use, whatever that costs.
  bool at_once() const noexcept;
  /// True for a first use that gets no plan, unless another type with the same definition had one.
  bool small(std::int64_t count) noexcept;
  /// True once messages of a type with many arguments have moved so much, with this one, or have taken so long that
  /// decoding it may pay.
  bool worth_decoding(std::int64_t count) noexcept;
  /// The library has registered the type again.
  void set_context(void* context) noexcept;
  /// The engine serves the type, if it can, once it is decoded.
  void serve_locked(State state) noexcept;
  /// The type is about to be freed, or was not freed after that.
  void stop_serving() noexcept;
  void serve_again() noexcept;
  /// True if the type that has the handle now is constructed as the one that the entry was made for.
  bool is_current() noexcept;

  static constexpr int left_bits = (call_kind_count - static_cast<int>(CallKind::send)) * distance_count;
  static constexpr int left_shift(CallKind message) noexcept {
    return (static_cast<int>(message) - static_cast<int>(CallKind::send)) * distance_count;
  }

  static constexpr std::int32_t bytes_unknown = -1, bytes_too_many = -2;
  const MPI_Datatype handle_;
  mutable std::atomic<std::int32_t> bytes_{bytes_unknown};
  std::atomic<std::uint64_t> definition_id_{0};
  const Life life_;
  std::atomic<State> state_;
  std::atomic<std::int64_t> respell_from_{std::numeric_limits<std::int64_t>::max()};
  std::atomic<std::uint64_t> left_{0};  ///< count << left_bits | one bit per message kind and distance
  std::atomic<bool> reused_{false};
  std::int64_t first_count_ = 0;                ///< of a small message, before there is a definition
  int uses_ = 0;                                ///< of a type with many arguments, before it is decoded
  std::int64_t moved_ = 0;                      ///< bytes in these uses
  std::shared_ptr<const ServedType> measured_;  ///< the library's time for these uses, if the engine can measure it
  const std::uint64_t id_;
  std::int64_t arguments_ = 0;  ///< of the constructors, if they are known to be many; the type has no definition yet
  BriefMutex mutex_;
  std::shared_ptr<TypeDefinition> definition_;  ///< from the first use on; does not change once the type is decoded
  std::atomic<bool> served_{false};
  void* context_;  ///< with which the library has registered the type (ServedTypes), or nullptr
  friend class TypeRegistry;
  std::int64_t handles_ = 1;    ///< protected by the registry's mutex
  TypeEntry* older_ = nullptr;  ///< after clear()
};

class TypeRegistry {
 public:
  [[gnu::always_inline]] TypeEntry* find(MPI_Datatype type) noexcept {
    TypeEntry* const entry = table_.find(type);
    return entry || !unused_.has(type) ? entry : find_unused(type);
  }
  /// True if the handle may be used in communication. If incomplete(), false may be wrong.
  bool committed(MPI_Datatype type) noexcept { return predefined(type) || unused_.has(type) || find(type); }
  /// Asks the MPI library whether `type` is committed. True if it can't be asked, because only sessions are open: only
  /// an erroneous program uses a type that is not committed.
  bool asked_committed(MPI_Datatype type) noexcept;
  /// A communicator of this rank alone that returns errors, with which the library is asked; MPI_COMM_NULL: there is
  /// none.
  MPI_Comm comm_for_asking() noexcept;
  /// Bytes of one element of a committed type, from the MPI library, so the type need not be decoded; 0: the type is
  /// not known, or has no bytes, or more than INT_MAX.
  std::int64_t size_of(MPI_Datatype type) noexcept {
    const Predefined* const known = predefined(type);
    return known ? known->size : size_of_derived(type);
  }
  /// True if there was no memory for some type: then a type that is not known may have been committed.
  bool incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }
  std::size_t size() noexcept {
    const std::lock_guard lock(mutex_);
    return table_.size() + unused_.count();
  }

  // The following functions may be called from any thread within an MPI call. If there is no memory, a type is left to
  // MPI, and incomplete() is true from then on.
  /// Inserts a derived type that was committed. Does nothing if it is known. `context`: the context with which the
  /// library has registered the type in this commit (ServedTypes), or nullptr.
  void insert(MPI_Datatype type, void* context = nullptr) noexcept {
    if (table_.find(type) || uncommitted_count_.load(std::memory_order_relaxed) != 0 || !unused_.set(type, context))
      insert_entry(type, context);
  }
  /// Inserts a type that is never freed: a pair type, or one of MPI_Type_create_f90_*.
  void insert_permanent(MPI_Datatype type) noexcept;
  /// Inserts a predefined type for which this rank needs an entry: for contiguous messages that may gain, and for
  /// device memory.
  void insert_predefined(MPI_Datatype type) noexcept;
  /// The application received this handle of an existing type and must free it if it is a derived type.
  void add_handle(MPI_Datatype type) noexcept;

  /// Before MPI_Type_free: true if the type was not used after its commit and has one handle; nothing is known of it
  /// then.
  bool release_unused(MPI_Datatype type, void** context) noexcept { return unused_.clear(type, context); }
  /// MPI_Type_free has failed after that.
  void unused_not_freed(MPI_Datatype type, void* context) noexcept { unused_.set(type, context); }

  /// What release() removed; kept until it is known whether the library has freed the handle.
  struct Released {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    TypeEntry* entry = nullptr;  ///< no longer in the table
    bool counted = false;        ///< only a count was decremented; no entry was removed
  };
  /// Before MPI_Type_free, because afterwards another type may have the handle at once.
  Released release(MPI_Datatype type) noexcept;
  /// freed(): MPI_Type_free has succeeded. not_freed(): it has failed; restores the state before release().
  void freed(const Released& released) noexcept;
  void not_freed(const Released& released) noexcept;

  /// MPI_Finalize begins, so the MPI library can't be asked any more whether a type is committed.
  void stop_asking() noexcept;
  /// Removes all entries; after this every call is forwarded.
  void clear() noexcept;

 private:
  std::int64_t size_of_derived(MPI_Datatype type) noexcept;
  void insert_entry(MPI_Datatype type, void* context) noexcept;
  /// The entry of a type with a mark, from now on.
  TypeEntry* find_unused(MPI_Datatype type) noexcept;

  // The caller of these functions holds the mutex.
  TypeEntry* find_locked(MPI_Datatype type) noexcept;
  void add(MPI_Datatype type, TypeEntry::Life life, std::int64_t handles, void* context = nullptr) noexcept;
  /// Counts one more handle of a type that is known, committed or not.
  bool count_known(MPI_Datatype type) noexcept;
  /// The entry of this type; an entry of an earlier type with the same handle is removed.
  TypeEntry* current(MPI_Datatype type) noexcept;
  void mark_incomplete() noexcept;

  /// Handles of uncommitted types that MPI_Type_get_contents has returned. There are few at a time.
  struct Uncommitted {
    MPI_Datatype type;
    std::int64_t handles;
  };
  std::vector<Uncommitted>::iterator uncommitted(MPI_Datatype type) noexcept;

  HandleTable<MPI_Datatype, TypeEntry, NoMutex> table_;  ///< changed under the mutex
  std::atomic<bool> incomplete_{false};
  std::atomic<MPI_Comm> asking_comm_{MPI_COMM_NULL};  ///< of this rank alone, returns errors; see comm_for_asking()
  CommittedMarks unused_;                             ///< types without an entry; one gets it under the mutex
  std::atomic<std::size_t> uncommitted_count_{0};     ///< of `uncommitted_`
  BriefMutex mutex_;                                  ///< protects the members below and changes to the table
  std::uint64_t last_id_ = 0;
  std::vector<Uncommitted> uncommitted_;
  TypeEntry* forgotten_ = nullptr;  ///< entries that are no longer in the table but may be in use
};

}  // namespace bestride::inline interpose
