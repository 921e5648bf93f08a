// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/late_library.hpp"

#include <dlfcn.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "interpose/preload/slots.hpp"
#include "interpose/preload/writable.hpp"

namespace bestride::preload {
namespace {

/// An entry of the linker's list. It is compared, and not read: the object may have been unloaded, and another may have
/// its address.
struct Entry {
  const link_map* map = nullptr;
  const ElfW(Dyn) * dynamic = nullptr;

  explicit Entry(const link_map* of) noexcept : map(of), dynamic(of ? of->l_ld : nullptr) {}
  bool is(const link_map& other) const noexcept { return map == &other && dynamic == other.l_ld; }
};

constexpr SymbolName mpi_init("PMPI_Init");

std::atomic<const link_map*> redirected{nullptr};
Entry redirected_entry{nullptr};
char redirected_path[PATH_MAX];

/// The last object that was searched for an MPI library. New objects are appended to the list.
Entry last_searched{nullptr};

/// The library's functions, by slot.
std::atomic<std::uintptr_t> functions[max_slots];

/// A library that was unloaded and loaded again may have the same entry.
bool is_redirected(const link_map& map) noexcept {
  if (!redirected_entry.is(map)) return false;
  const LoadedObject object(map);
  const ElfW(Sym)* const init = object.find(mpi_init);
  return init && slot_at(object.base + init->st_value) != no_slot;
}

/// Where the search begins; nullptr if the redirected library is still loaded. While there was no MPI library, objects
/// that were searched are not searched again.
const link_map* first_to_search() noexcept {
  const link_map* begin = _r_debug.r_map;
  for (const link_map* map = begin; map; map = map->l_next) {
    if (is_redirected(*map)) return nullptr;
    if (!redirected_entry.map && last_searched.is(*map)) begin = map->l_next;
  }
  return begin;
}

const link_map* last_object() noexcept {
  const link_map* map = _r_debug.r_map;
  while (map->l_next) map = map->l_next;
  return map;
}

bool copy_path(const char* path) noexcept {
  std::size_t i = 0;
  while (i != sizeof redirected_path && (redirected_path[i] = path[i]) != '\0') ++i;
  return i != sizeof redirected_path;
}

void redirect(const LoadedObject& library) noexcept {
  for (unsigned slot = 0; slot < slot_count(); ++slot) {
    ElfW(Sym)* const symbol = library.find(SymbolName(slot_name(slot)));
    functions[slot].store(symbol ? library.base + symbol->st_value : 0, std::memory_order_release);
    if (symbol)
      reinterpret_cast<std::atomic<ElfW(Addr)>&>(symbol->st_value)
          .store(slot_entry(slot) - library.base, std::memory_order_release);
  }
}

}  // namespace

const link_map* find_mpi_library(const link_map* begin) noexcept {
  for (const link_map* map = begin; map; map = map->l_next) {
    const LoadedObject object(*map);
    if (object.defines(mpi_init) && !object.defines(other_copy)) return map;
  }
  return nullptr;
}

void redirect_late_library() noexcept {
  const link_map* const map = find_mpi_library(first_to_search());
  last_searched = Entry(last_object());
  if (!map) return;
  const LoadedObject library(*map);
  const Writable writable(library, library.symbols, library.symbol_count() * sizeof *library.symbols);
  if (!writable || !copy_path(map->l_name)) return;
  redirect(library);
  redirected_entry = Entry(map);
  redirected.store(map, std::memory_order_release);
}

void* open_late_library() noexcept {
  const link_map* const wanted = redirected.load(std::memory_order_acquire);
  if (!wanted) return nullptr;
  void* const handle = dlopen(redirected_path, RTLD_NOLOAD | RTLD_LAZY);
  link_map* map = nullptr;
  if (handle && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map == wanted) return handle;
  if (handle) dlclose(handle);
  return nullptr;
}

void* late_function(const char* name) noexcept {
  if (!redirected.load(std::memory_order_acquire)) return nullptr;
  const unsigned slot = slot_of(name);
  return slot == no_slot ? nullptr : reinterpret_cast<void*>(functions[slot].load(std::memory_order_acquire));
}

}  // namespace bestride::preload
