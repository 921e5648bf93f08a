// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/weak_references.hpp"

#include "interpose/preload/late_library.hpp"
#include "interpose/preload/loaded_object.hpp"
#include "interpose/preload/slots.hpp"
#include "interpose/preload/writable.hpp"

namespace bestride::preload {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t jump_slot = R_X86_64_JUMP_SLOT, address_slot = R_X86_64_GLOB_DAT, pointer = R_X86_64_64;
#elif defined(__aarch64__)
constexpr std::uint32_t jump_slot = R_AARCH64_JUMP_SLOT, address_slot = R_AARCH64_GLOB_DAT, pointer = R_AARCH64_ABS64;
#endif

bool is_mpi_name(const char* name) noexcept {
  if (*name == 'P') ++name;
  return name[0] == 'M' && name[1] == 'P' && name[2] == 'I' && name[3] == '_';
}

bool is_weak_import(const ElfW(Sym) & symbol) noexcept {
  return symbol.st_shndx == SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) == STB_WEAK;
}

bool may_refer_to_mpi(const LoadedObject& object) noexcept {
  if (!object.symbols || !object.names) return false;
  for (std::uint32_t i = 1; i < object.imports_end(); ++i)
    if (is_weak_import(object.symbols[i]) && is_mpi_name(object.name_of(object.symbols[i]))) return true;
  return false;
}

/// The definition that the linker would find without us; 0 if there is none.
std::uintptr_t other_definition(const char* text) noexcept {
  const SymbolName name(text);
  for (const link_map* map = _r_debug.r_map; map; map = map->l_next) {
    const LoadedObject object(*map);
    const ElfW(Sym)* const symbol = object.find(name);
    if (symbol && !object.defines(other_copy)) return object.base + symbol->st_value;
  }
  return 0;
}

void rebind(const LoadedObject& object, const ElfW(Rela) * table, std::size_t begin, std::size_t end,
            const bool* present) noexcept {
  for (std::size_t i = begin; i < end; ++i) {
    const auto type = static_cast<std::uint32_t>(ELF64_R_TYPE(table[i].r_info));
    if ((type != jump_slot && type != address_slot && type != pointer) ||
        !is_weak_import(object.symbols[ELF64_R_SYM(table[i].r_info)]))
      continue;
    const std::uintptr_t address = object.base + table[i].r_offset;
    const std::uintptr_t addend = type == pointer ? static_cast<std::uintptr_t>(table[i].r_addend) : 0;
    const unsigned slot = slot_at(*reinterpret_cast<const std::uintptr_t*>(address) - addend);
    if (slot == no_slot || present[slot]) continue;
    auto* const reference = reinterpret_cast<std::uintptr_t*>(address);
    if (const Writable writable(object, reference, sizeof *reference); writable)
      *reference = other_definition(slot_name(slot)) + addend;
  }
}

}  // namespace

void rebind_weak_references(const bool* present) noexcept {
  for (const link_map* map = _r_debug.r_map; map; map = map->l_next) {
    const LoadedObject object(*map);
    if (!may_refer_to_mpi(object)) continue;
    if (object.relocations) rebind(object, object.relocations, object.relative_count, object.relocation_count, present);
    if (object.jump_relocations) rebind(object, object.jump_relocations, 0, object.jump_relocation_count, present);
  }
}

}  // namespace bestride::preload
