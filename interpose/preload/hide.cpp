// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/hide.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "interpose/preload/slots.hpp"

namespace bestride::preload {
namespace {

/// This object's dynamic symbols, as the loader reads them.
struct Symbols {
  ElfW(Sym) * first = nullptr;
  std::size_t count = 0;
  std::uintptr_t base = 0;  ///< of their values
};

Symbols own_symbols() noexcept {
  Dl_info info;
  link_map* map = nullptr;
  Symbols own;
  if (!dladdr1(reinterpret_cast<void*>(&hide_absent_functions), &info, reinterpret_cast<void**>(&map),
               RTLD_DL_LINKMAP) ||
      !map)
    return own;
  own.base = map->l_addr;
  std::uintptr_t end = 0;  // of the symbol table
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SYMTAB) own.first = reinterpret_cast<ElfW(Sym)*>(entry->d_un.d_ptr);
    if (entry->d_tag == DT_STRTAB) end = entry->d_un.d_ptr;
  }
  // Linkers place the string table directly after the symbol table.
  const auto begin = reinterpret_cast<std::uintptr_t>(own.first);
  if (own.first && end > begin) own.count = (end - begin) / sizeof(ElfW(Sym));
  return own;
}

bool absent(unsigned slot) noexcept {
  const bool found = dlsym(RTLD_NEXT, slot_name(slot)) != nullptr;
  if (!found) dlerror();
  return !found;
}

/// The slots whose functions no other object defines. An MPI library that defines PMPI_X also defines MPI_X, so most
/// functions need only one search.
struct AbsentSlots {
  AbsentSlots() noexcept {
    const unsigned functions = slot_count() / 2;
    for (unsigned i = 0; i < functions; ++i) {
      if (!absent(functions + i)) continue;
      slots[functions + i] = true;
      slots[i] = absent(i);
    }
  }
  bool slots[max_slots] = {};
};

bool allow_writing(const Symbols& symbols, bool allowed) noexcept {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(symbols.first) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(symbols.first + symbols.count);
  return mprotect(reinterpret_cast<void*>(begin), end - begin, allowed ? PROT_READ | PROT_WRITE : PROT_READ) == 0;
}

}  // namespace

void hide_absent_functions() noexcept {
  const Symbols symbols = own_symbols();
  if (symbols.count == 0) return;
  const AbsentSlots absent;
  if (!allow_writing(symbols, true)) return;
  for (std::size_t i = 1; i < symbols.count; ++i) {
    ElfW(Sym)& symbol = symbols.first[i];
    const unsigned slot = symbol.st_shndx != SHN_UNDEF ? slot_at(symbols.base + symbol.st_value) : no_slot;
    if (slot == no_slot || !absent.slots[slot]) continue;
    // The loader skips an undefined symbol and continues the search in the next object.
    symbol.st_shndx = SHN_UNDEF;
    symbol.st_value = 0;
  }
  allow_writing(symbols, false);
}

namespace {

[[gnu::constructor]] void hide_at_start() noexcept {
  // In a process without MPI this costs one symbol lookup.
  if (dlsym(RTLD_NEXT, "PMPI_Init"))
    hide_absent_functions();
  else
    dlerror();
}

}  // namespace
}  // namespace bestride::preload
