// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/visibility.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>

#include "interpose/preload/late_library.hpp"
#include "interpose/preload/loaded_object.hpp"
#include "interpose/preload/slots.hpp"
#include "interpose/preload/weak_references.hpp"
#include "interpose/preload/writable.hpp"

// In the file this is an ordinary function. An indirect one would be called before this object is relocated, for which
// the linker prints an error.
extern "C" [[gnu::visibility("default")]] void __gmon_start__() {}

namespace bestride::preload {
namespace {

/// Values of a symbol's version that hide it (glibc, elf/dl-lookup.c, check_match): bit 15 and the number of a version.
/// A relocation without a version accepts a hidden symbol of version 2, the first that a library can define; dlsym()
/// does not. Neither accepts a hidden symbol of a later version.
enum Version : std::uint16_t { hidden_from_dlsym = 0x8002, hidden = 0x8003 };

/// Whether the functions exist, by slot.
bool present[max_slots];

/// Calls visit(symbol, its version, its slot) for every MPI function that this object exports.
template <class Visit>
void for_each_export(const LoadedObject& own, Visit visit) noexcept {
  const std::uint32_t end = own.imports_end() + export_count();
  for (std::uint32_t i = own.imports_end(); i != end; ++i)
    if (const unsigned slot = slot_at(own.base + own.symbols[i].st_value); slot != no_slot)
      visit(own.symbols[i], own.versions[i], slot);
}

void look_for_functions(const LoadedObject& own, const LoadedObject& in) noexcept {
  static std::uint32_t hashes[max_slots];
  if (in.defines(other_copy)) return;
  for_each_export(own, [&](const ElfW(Sym) & symbol, std::uint16_t, unsigned slot) {
    if (present[slot]) return;
    const char* const text = own.name_of(symbol);
    if (hashes[slot] == 0) hashes[slot] = SymbolName(text).gnu_hash;
    present[slot] = in.defines(SymbolName(text, hashes[slot]));
  });
}

/// The MPI library is first, because it has almost all functions.
void find_present(const LoadedObject& own, const link_map& mpi) noexcept {
  look_for_functions(own, LoadedObject(mpi));
  for (const link_map* map = _r_debug.r_map; map; map = map->l_next)
    if (map != &mpi) look_for_functions(own, LoadedObject(*map));
}

/// The resolver of __gmon_start__. It never returns null: objects that were relocated earlier hold the function, and on
/// aarch64 they look it up once more when they call it.
void (*resolve_hook())() {
  redirect_late_library();
  return &__gmon_start__;
}

void install_hook(const LoadedObject& own) noexcept {
  ElfW(Sym)* const hook = own.find(SymbolName("__gmon_start__"));
  if (!hook) return;
  const Writable writable(own, hook, sizeof *hook);
  if (!writable) return;
  own.versions[hook - own.symbols] = hidden_from_dlsym;
  hook->st_info = ELF64_ST_INFO(STB_GLOBAL, STT_GNU_IFUNC);
  hook->st_value = reinterpret_cast<std::uintptr_t>(&resolve_hook) - own.base;
}

/// Only this thread runs, and no function of libc can be called (system_call.hpp).
void adapt_at_start() noexcept {
  const link_map* const map = own_link_map();
  if (!map) return;
  const LoadedObject own(*map);
  if (!own.versions || own.imports_end() == 0) return;
  const link_map* const mpi = find_mpi_library(_r_debug.r_map);
  {
    const Writable writable(own, own.versions, (own.imports_end() + export_count()) * sizeof *own.versions);
    if (!writable) return;
    if (mpi)
      find_present(own, *mpi);
    else
      install_hook(own);
    for_each_export(own, [](ElfW(Sym)&, std::uint16_t& version, unsigned slot) {
      if (!present[slot]) version = hidden;
    });
  }
  rebind_weak_references(present);
}

}  // namespace
}  // namespace bestride::preload

extern "C" {
/// The resolver of an indirect function that nobody calls: the linker runs it as the last relocation of this object.
[[gnu::visibility("hidden")]] void (*bestride_adapt_at_start())() {
  bestride::preload::adapt_at_start();
  return &__gmon_start__;
}
[[gnu::visibility("hidden"), gnu::ifunc("bestride_adapt_at_start")]] void bestride_indirect();
}
[[gnu::used]] static void (*const indirect)() = &bestride_indirect;
