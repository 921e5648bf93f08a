// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a loaded object as the dynamic linker does: its symbols, hash tables and relocations, from its dynamic section.
// visibility.cpp uses it while the linker is still relocating objects, when dlsym() can't be called. Nothing here calls
// libc (system_call.hpp).
#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace bestride::preload {

/// A symbol name with its hash. `text` must outlive it.
struct SymbolName {
  constexpr explicit SymbolName(const char* name) noexcept : text(name) {
    for (const char* c = name; *c; ++c) gnu_hash = gnu_hash * 33 + static_cast<unsigned char>(*c);
  }
  constexpr SymbolName(const char* name, std::uint32_t known_hash) noexcept : text(name), gnu_hash(known_hash) {}
  const char* text;
  std::uint32_t gnu_hash = 5381;
};

/// This object's entry in the linker's list; nullptr if it is not there.
const link_map* own_link_map() noexcept;

/// Views of the object that `map` describes. Valid while the object is mapped; no locks, no ownership.
class LoadedObject {
 public:
  explicit LoadedObject(const link_map& map) noexcept;

  /// The object's definition of a symbol, of any version; nullptr if it has none.
  ElfW(Sym) * find(const SymbolName& name) const noexcept;
  bool defines(const SymbolName& name) const noexcept { return find(name) != nullptr; }

  const char* name_of(const ElfW(Sym) & symbol) const noexcept { return names + symbol.st_name; }

  /// All imported symbols have an index below this one.
  std::uint32_t imports_end() const noexcept { return gnu_hash ? gnu_hash[1] : sysv_hash ? sysv_hash[1] : 0; }

  /// The number of symbols, imported ones included.
  std::uint32_t symbol_count() const noexcept;

  std::uintptr_t base = 0;  ///< of the symbols' values
  ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  std::uint16_t* versions = nullptr;  ///< one per symbol; null: no symbol has a version
  const ElfW(Rela) * relocations = nullptr;
  std::size_t relocation_count = 0;
  std::size_t relative_count = 0;  ///< of `relocations`; these come first and refer to no symbol
  const ElfW(Rela) * jump_relocations = nullptr;
  std::size_t jump_relocation_count = 0;

 private:
  ElfW(Sym) * find_by_gnu_hash(const SymbolName& name) const noexcept;
  ElfW(Sym) * find_by_sysv_hash(const SymbolName& name) const noexcept;
  ElfW(Sym) * defined_as(std::uint32_t index, const SymbolName& name) const noexcept;

  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
};

}  // namespace bestride::preload
