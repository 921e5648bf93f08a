// SPDX-License-Identifier: Apache-2.0
#pragma once
// HandleTable: maps an MPI handle to our object. Read without a lock on every call, written rarely and under a lock.
//
// Open addressing with atomic key and value. A removed handle keeps its slot with a null value, because MPI libraries
// soon reuse handle values; a later insertion may take over such a slot. A table that fills up is replaced by one four
// times as large. The old one is kept, because a reader may be using it; all old ones together are smaller than the
// newest. So memory grows with the number of different handle values seen, and libraries reuse those. Alternative
// considered: a reader-writer lock around std::unordered_map, which costs 20 ns per lookup instead of 1 to 2 ns.
#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

#include "interpose/mpi/brief_mutex.hpp"
#include "interpose/mpi/fault_injection.hpp"
#include "interpose/mpi/handle_bits.hpp"

namespace bestride::inline interpose {

/// The mutex of a table whose owner serializes all calls but find(): none.
struct NoMutex {
  void lock() noexcept {}
  void unlock() noexcept {}
};

/// Handle: an integer or a pointer. A handle whose bits are all zero can't be inserted. The table does not own its
/// values.
template <class Handle, class Value, class Mutex = BriefMutex>
class HandleTable {
 public:
  HandleTable() noexcept { table_.store(&first_, std::memory_order_release); }
  ~HandleTable() {
    for (Table* table = table_.load(); table != &first_;) {
      Table* older = table->older;
      delete[] table->slots;
      delete table;
      table = older;
    }
  }
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  [[gnu::always_inline]] Value* find(Handle handle) const noexcept {
    const std::uint64_t key = bits_of(handle);
    const Table* table = table_.load(std::memory_order_acquire);
    for (std::uint64_t i = hash(key);; ++i) {
      const Slot& slot = table->slots[i & table->mask];
      const std::uint64_t there = slot.key.load(std::memory_order_acquire);
      if (there == key) return slot.value.load(std::memory_order_acquire);
      if (there == 0) return nullptr;
    }
  }

  /// False if there is no memory; then nothing has changed. *replaced: the previous value of the handle, or nullptr.
  bool insert(Handle handle, Value* value, Value** replaced) noexcept {
    const std::lock_guard lock(mutex_);
    return insert_locked(handle, value, replaced);
  }
  /// Returns the value of `handle` after the call: `value`, or the existing one, which is kept; nullptr if there is no
  /// memory.
  Value* insert_if_absent(Handle handle, Value* value) noexcept {
    const std::lock_guard lock(mutex_);
    if (Value* known = find(handle)) return known;
    Value* replaced = nullptr;
    return insert_locked(handle, value, &replaced) ? value : nullptr;
  }

  /// False: there is no memory for more entries. True: the next few can be inserted.
  bool reserve() noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    if (table->used.load(std::memory_order_relaxed) * 2 <= table->mask) return true;
    const std::lock_guard lock(mutex_);
    table = table_.load(std::memory_order_relaxed);
    return table->used.load(std::memory_order_relaxed) * 2 <= table->mask || widen();
  }

  /// Returns the removed value; nullptr if there was none.
  Value* remove(Handle handle) noexcept {
    const std::uint64_t key = bits_of(handle);
    const std::lock_guard lock(mutex_);
    Table* table = table_.load(std::memory_order_relaxed);
    for (std::uint64_t i = hash(key);; ++i) {
      Slot& slot = table->slots[i & table->mask];
      const std::uint64_t there = slot.key.load(std::memory_order_relaxed);
      if (there == 0) return nullptr;
      if (there != key) continue;
      Value* value = slot.value.load(std::memory_order_relaxed);  // written with the mutex only
      slot.value.store(nullptr, std::memory_order_release);
      if (value) --live_;
      return value;
    }
  }

  template <class Function>
  void clear(Function&& function) noexcept {
    const std::lock_guard lock(mutex_);
    Table* table = table_.load(std::memory_order_relaxed);
    for (std::uint64_t i = 0; i <= table->mask; ++i)
      if (Value* value = table->slots[i].value.exchange(nullptr, std::memory_order_acq_rel)) function(value);
    live_ = 0;
  }

  std::size_t size() const noexcept {
    const std::lock_guard lock(mutex_);
    return live_;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key{0};
    std::atomic<Value*> value{nullptr};
  };
  static constexpr std::uint64_t first_size = 64;
  struct Table {
    std::uint64_t mask;
    std::atomic<std::uint64_t> used;  ///< slots with a key, live or not; written with the mutex
    Slot* slots;
    Table* older;
  };
  static std::uint64_t hash(std::uint64_t key) noexcept { return (key * 0x9E3779B97F4A7C15u) >> 32; }

  /// The caller holds the mutex.
  bool insert_locked(Handle handle, Value* value, Value** replaced) noexcept {
    const std::uint64_t key = bits_of(handle);
    *replaced = nullptr;
    if (key == 0) return false;
    Table* table = table_.load(std::memory_order_relaxed);
    const auto used = [&] { return table->used.load(std::memory_order_relaxed); };
    if (used() * 2 > table->mask && !widen() && used() * 4 > table->mask * 3) return false;
    table = table_.load(std::memory_order_relaxed);
    Slot* vacant = nullptr;
    for (std::uint64_t i = hash(key);; ++i) {
      Slot& slot = table->slots[i & table->mask];
      const std::uint64_t there = slot.key.load(std::memory_order_relaxed);
      if (there == key) {
        *replaced = slot.value.load(std::memory_order_relaxed);
        slot.value.store(value, std::memory_order_release);
        if (!*replaced) ++live_;
        return true;
      }
      if (there != 0) {
        if (!vacant && !slot.value.load(std::memory_order_relaxed)) vacant = &slot;
        continue;
      }
      if (!vacant) {
        vacant = &slot;
        table->used.store(used() + 1, std::memory_order_relaxed);
      }
      // A reader that looks up the slot's old handle may see the new value. Only a program that uses a freed handle
      // does that.
      vacant->key.store(key, std::memory_order_release);
      vacant->value.store(value, std::memory_order_release);
      ++live_;
      return true;
    }
  }

  /// Copies only live entries into the new table.
  bool widen() noexcept {
    Table* old = table_.load(std::memory_order_relaxed);
    const std::uint64_t size = (old->mask + 1) * 4;
    auto* slots = inject_failure(FailPoint::table) ? nullptr : new (std::nothrow) Slot[size];
    auto* wider = new (std::nothrow) Table{size - 1, 0, slots, old};
    if (!slots || !wider) {
      delete[] slots;
      delete wider;
      return false;
    }
    for (std::uint64_t i = 0; i <= old->mask; ++i)
      if (Value* value = old->slots[i].value.load(std::memory_order_relaxed)) {
        const std::uint64_t key = old->slots[i].key.load(std::memory_order_relaxed);
        std::uint64_t j = hash(key);
        while (slots[j & wider->mask].key.load(std::memory_order_relaxed) != 0) ++j;
        slots[j & wider->mask].key.store(key, std::memory_order_relaxed);
        slots[j & wider->mask].value.store(value, std::memory_order_relaxed);
        ++wider->used;
      }
    table_.store(wider, std::memory_order_release);
    return true;
  }

  std::atomic<Table*> table_;
  Slot first_slots_[first_size];
  Table first_{first_size - 1, 0, first_slots_, nullptr};
  std::size_t live_ = 0;
  [[no_unique_address]] mutable Mutex mutex_;
};

}  // namespace bestride::inline interpose
