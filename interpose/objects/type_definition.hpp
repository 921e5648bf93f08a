// SPDX-License-Identifier: Apache-2.0
#pragma once
// TypeDefinition: what is known of all datatypes with the same construction: the layout, and a plan for each count.
// TypeDefinitions: the most recently used definitions, also those of which no type exists at present.
//
// A solver may make a type for each message and free it. Each is another type with another handle, but there are few
// definitions, so such a type has a plan at its first use: from commit to plan takes 0.3 us (bench/figures.md).
// Decoding takes 1 to 10 us, so other types are left to MPI at the first use of a small count.
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "datatype/decode.hpp"
#include "datatype/type_key.hpp"
#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/objects/plan.hpp"

namespace bestride::inline interpose {

class TypeDefinition {
 public:
  enum class State : std::uint8_t {
    undecoded,
    useful,      ///< has gaps between elements or inside them
    contiguous,  ///< any count of elements is one block
    empty,       ///< no bytes at all
    opaque,      ///< can't be represented
  };

  /// The definition of types whose constructors have too many arguments for a key: it is not shared.
  TypeDefinition() noexcept {}
  /// May throw.
  explicit TypeDefinition(const TypeKey& key);

  /// Unique in the process and never used again; not 0.
  std::uint64_t id() const noexcept { return id_; }
  /// True if it has a key: the constructors have few arguments.
  bool shared() const noexcept { return key_size_ != 0; }
  /// True for the key that it was made with.
  bool has(const TypeKey& key) const noexcept;
  State state() const noexcept { return state_.load(std::memory_order_acquire); }
  /// `type` must have this definition. Any thread, within an MPI call.
  State decode(MPI_Datatype type) noexcept;
  /// True if `type` has the same layout, bounds and basic type, so all that follows from this definition is valid for
  /// it. Only if decoded. Decodes `type`. May throw.
  bool describes(MPI_Datatype type) const;
  /// The decoded type. Only if state() is neither undecoded nor opaque.
  const DecodedType& decoded() const noexcept { return decoded_; }
  /// Size of the only basic type in bytes; 0: there are several. Only if decoded.
  std::int64_t leaf_size() const noexcept { return leaf_size_; }

  /// The plan for `count` elements that was made before; empty: there is none.
  PlanRef find(std::int64_t count) noexcept;
  /// Makes this plan. Only if decoded and not opaque. Empty: no memory.
  PlanRef make(std::int64_t count) noexcept;
  /// True if this was called with the same count before, and not with many other counts since. Calls of the program and
  /// messages of the engine are counted separately, because one call may be both.
  enum class SeenBy : std::uint8_t { call, engine };
  bool seen_before(std::int64_t count, SeenBy by = SeenBy::call) noexcept;

 private:
  struct Counted {
    std::int64_t count;
    PlanRef plan;
  };
  PlanRef find_locked(std::int64_t count) const noexcept;

  static constexpr std::size_t short_key = 12;  ///< words: a subarray of two dimensions
  static std::atomic<std::uint64_t> last_id;

  // Members in the order of the first use of a type with a known definition.
  std::size_t key_size_ = 0;
  std::int64_t short_key_[short_key];
  std::unique_ptr<std::int64_t[]> long_key_;
  const std::uint64_t id_ = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  std::atomic<State> state_{State::undecoded};
  DecodedType decoded_;
  std::int64_t leaf_size_ = 0;
  BriefMutex mutex_;
  std::vector<Counted> plans_;
  std::size_t oldest_ = 0;
  struct Seen {
    std::int64_t counts[8] = {};  ///< small counts used once
    std::size_t next = 0;
  };
  Seen seen_[2];  ///< by SeenBy
};

class TypeDefinitions {
 public:
  /// The definition of a type, which is shared with other types unless its constructors have many arguments. nullptr:
  /// no memory. Any thread, within an MPI call. `arguments`: set to their number if they are many; the result is
  /// nullptr then.
  std::shared_ptr<TypeDefinition> of(MPI_Datatype type, std::int64_t* arguments = nullptr) noexcept;
  /// Drops the definitions that no type uses, because their plans hold MPI datatypes. Any thread, within an MPI call.
  void drop_unused() noexcept;
  /// MPI ends: no definition is shared any more.
  void clear() noexcept;

 private:
  /// A solver that shrinks its matrix step by step has hundreds of definitions (ScaLAPACK's LU: 250).
  static constexpr unsigned slots_log = 10;
  struct Slot {
    std::uint64_t hash = 0;  ///< of the definition's key
    std::shared_ptr<TypeDefinition> definition;
  };
  BriefMutex mutex_;
  std::unique_ptr<Slot[]> slots_;  ///< by the hash; made at the first use
};

}  // namespace bestride::inline interpose
