// SPDX-License-Identifier: Apache-2.0
#pragma once
// The slots that the entry stubs jump through, one per exported MPI_X and PMPI_X. A slot initially points at its lazy
// thunk. It is updated with one word-sized store and may be stored to twice with the same value, so two threads that
// make the same first call need no lock. The slots are in the generated assembly. Everything here is safe before main
// and in a process without MPI.
#include <cstddef>
#include <cstdint>

// Defined in the generated assembly.
extern "C" {
[[gnu::visibility("hidden")]] extern const char bestride_entries_begin[];
[[gnu::visibility("hidden")]] extern const char bestride_entries_end[];
}

namespace bestride::preload {

inline constexpr unsigned no_slot = ~0u;

/// Upper bound of slot_count(), for arrays indexed by slot.
inline constexpr unsigned max_slots = 1536;

/// The number of slots: MPI_X and PMPI_X together.
unsigned slot_count() noexcept;

/// The number of symbols that this object exports: those of the slots, and a few others.
unsigned export_count() noexcept;

/// The exported symbol that jumps through slot `index` (< slot_count()). Static storage.
const char* slot_name(unsigned index) noexcept;

/// The slot of an exported symbol; no_slot if there is none of that name. `before`: a hint that makes the search short:
/// the slot of the previous name in a list that is mostly in the order of the table.
unsigned slot_of(const char* name, unsigned before = no_slot) noexcept;

/// The distance of two entry stubs (stubs_*.in).
#if defined(__x86_64__)
inline constexpr unsigned entry_bytes = 16;
#elif defined(__aarch64__)
inline constexpr unsigned entry_bytes = 32;
#endif

/// The slot of the entry stub at `address`; no_slot if there is none.
inline unsigned slot_at(std::uintptr_t address) noexcept {
  const std::uintptr_t distance = address - reinterpret_cast<std::uintptr_t>(bestride_entries_begin);
  return distance < reinterpret_cast<std::uintptr_t>(bestride_entries_end) -
                         reinterpret_cast<std::uintptr_t>(bestride_entries_begin) &&
                 distance % entry_bytes == 0
             ? static_cast<unsigned>(distance / entry_bytes)
             : no_slot;
}

/// The address of the slot's entry stub.
inline std::uintptr_t slot_entry(unsigned index) noexcept {
  return reinterpret_cast<std::uintptr_t>(bestride_entries_begin) + entry_bytes * index;
}

/// The slot's current target; nullptr while it still leads to its lazy thunk.
void* slot_target(unsigned index) noexcept;

/// From now on the stub jumps to `target`. Everything written before this call is visible to the callee.
void set_slot_target(unsigned index, void* target) noexcept;

/// From now on the stub jumps to its lazy thunk again.
void reset_slot(unsigned index) noexcept;

/// Puts `entry` in front of the slot: from now on the stub jumps to `entry`, which continues through *inner. *inner
/// always holds the slot's current target. slot_target(), set_slot_target() and reset_slot() keep their meaning. Once
/// per slot, while the backend is opened.
void wrap_slot(unsigned index, void* entry, void** inner) noexcept;
/// The entry in front of the slot; nullptr if there is none.
void* wrapper(unsigned index) noexcept;

/// True if functions.tsv says that the hook is never needed.
bool slot_needs_no_hook(unsigned index) noexcept;

}  // namespace bestride::preload
