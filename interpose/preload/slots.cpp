// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/slots.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

// Defined in the generated assembly.
extern "C" {
extern std::atomic<void*> bestride_slots[];
extern const char bestride_thunks_begin[];
extern const char bestride_thunks_end[];
}

namespace bestride::preload {
namespace {
#include "slot_names.inc"

/// Where the targets of wrapped slots are stored instead; null: in the slot.
std::atomic<std::atomic<void*>*> inner_targets[max_slots];

std::atomic<void*>& target_cell(unsigned index) noexcept {
  std::atomic<void*>* const inner = inner_targets[index].load(std::memory_order_acquire);
  return inner ? *inner : bestride_slots[index];
}

}  // namespace

static_assert(sizeof(std::atomic<void*>) == sizeof(void*), "a slot is one word that a stub jumps through");
static_assert(2 * function_count <= max_slots);

unsigned slot_count() noexcept { return 2 * function_count; }

unsigned export_count() noexcept { return slot_count() + other_export_count; }

const char* slot_name(unsigned index) noexcept {
  // name_text holds "PMPI_X"; "MPI_X" is its tail.
  return index < function_count ? name_text + name_offset[index] + 1 : name_text + name_offset[index - function_count];
}

unsigned slot_of(const char* name, unsigned before) noexcept {
  const bool profiling = name[0] == 'P';
  const char* wanted = profiling ? name + 1 : name;
  const auto slot = [profiling](unsigned function) { return profiling ? function + function_count : function; };
  if (before != no_slot) {
    const unsigned near = before % function_count;
    for (const unsigned function : {near, near + 1})
      if (function < function_count && std::strcmp(wanted, slot_name(function)) == 0) return slot(function);
  }
  unsigned low = 0;
  unsigned high = function_count;
  while (low < high) {
    const unsigned middle = low + (high - low) / 2;
    const int order = std::strcmp(wanted, slot_name(middle));
    if (order == 0) return slot(middle);
    (order < 0 ? high : low) = order < 0 ? middle : middle + 1;
  }
  return no_slot;
}

void* slot_target(unsigned index) noexcept {
  void* const target = target_cell(index).load(std::memory_order_acquire);
  const auto address = reinterpret_cast<std::uintptr_t>(target);
  const bool lazy = address >= reinterpret_cast<std::uintptr_t>(bestride_thunks_begin) &&
                    address < reinterpret_cast<std::uintptr_t>(bestride_thunks_end);
  return lazy ? nullptr : target;
}

// Both stores are sequentially consistent: watch.cpp relies on their order relative to its own flag.
void set_slot_target(unsigned index, void* target) noexcept { target_cell(index).store(target); }

void reset_slot(unsigned index) noexcept {
  constexpr unsigned thunk_bytes = 16;  // stubs_*.in
  target_cell(index).store(const_cast<char*>(bestride_thunks_begin) + thunk_bytes * index);
}

void* wrapper(unsigned index) noexcept {
  return inner_targets[index].load(std::memory_order_acquire) ? bestride_slots[index].load(std::memory_order_acquire)
                                                              : nullptr;
}

void wrap_slot(unsigned index, void* entry, void** inner) noexcept {
  static_assert(sizeof(std::atomic<void*>) == sizeof(void*));
  auto* const cell = reinterpret_cast<std::atomic<void*>*>(inner);
  cell->store(bestride_slots[index].load(std::memory_order_acquire), std::memory_order_release);
  inner_targets[index].store(cell, std::memory_order_release);
  bestride_slots[index].store(entry, std::memory_order_release);
}

bool slot_needs_no_hook(unsigned index) noexcept {
  return function_needs_no_hook[index < function_count ? index : index - function_count];
}

}  // namespace bestride::preload
