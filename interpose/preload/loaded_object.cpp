// SPDX-License-Identifier: Apache-2.0
#include "interpose/preload/loaded_object.hpp"

namespace bestride::preload {
namespace {

bool same(const char* a, const char* b) noexcept {
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}

}  // namespace

const link_map* own_link_map() noexcept {
  const link_map* map = _r_debug.r_map;
  while (map && map->l_ld != _DYNAMIC) map = map->l_next;
  return map;
}

LoadedObject::LoadedObject(const link_map& map) noexcept : base(map.l_addr) {
  if (!map.l_ld) return;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    // The linker has replaced addresses by absolute ones, except in read-only dynamic sections such as the vDSO's.
    const std::uintptr_t value = entry->d_un.d_val;
    const std::uintptr_t address = value < base ? base + value : value;
    switch (entry->d_tag) {
      case DT_SYMTAB: symbols = reinterpret_cast<ElfW(Sym)*>(address); break;
      case DT_STRTAB: names = reinterpret_cast<const char*>(address); break;
      case DT_VERSYM: versions = reinterpret_cast<std::uint16_t*>(address); break;
      case DT_GNU_HASH: gnu_hash = reinterpret_cast<const std::uint32_t*>(address); break;
      case DT_HASH: sysv_hash = reinterpret_cast<const std::uint32_t*>(address); break;
      case DT_RELA: relocations = reinterpret_cast<const ElfW(Rela)*>(address); break;
      case DT_RELASZ: relocation_count = value / sizeof(ElfW(Rela)); break;
      case DT_RELACOUNT: relative_count = value; break;
      case DT_JMPREL: jump_relocations = reinterpret_cast<const ElfW(Rela)*>(address); break;
      case DT_PLTRELSZ: jump_relocation_count = value / sizeof(ElfW(Rela)); break;
      default: break;
    }
  }
}

ElfW(Sym) * LoadedObject::find(const SymbolName& name) const noexcept {
  if (!symbols || !names) return nullptr;
  return gnu_hash ? find_by_gnu_hash(name) : sysv_hash ? find_by_sysv_hash(name) : nullptr;
}

std::uint32_t LoadedObject::symbol_count() const noexcept {
  if (!gnu_hash) return sysv_hash ? sysv_hash[1] : 0;
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash + 4);
  const auto* const buckets = reinterpret_cast<const std::uint32_t*>(filter + gnu_hash[2]);
  const std::uint32_t* const hashes = buckets + gnu_hash[0];
  std::uint32_t last = 0;  // of the symbols with which a bucket begins
  for (std::uint32_t i = 0; i < gnu_hash[0]; ++i)
    if (buckets[i] > last) last = buckets[i];
  if (last < gnu_hash[1]) return gnu_hash[1];
  while (!(hashes[last - gnu_hash[1]] & 1)) ++last;
  return last + 1;
}

ElfW(Sym) * LoadedObject::defined_as(std::uint32_t index, const SymbolName& name) const noexcept {
  ElfW(Sym)& symbol = symbols[index];
  return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && same(name_of(symbol), name.text) ? &symbol : nullptr;
}

// The table: number of buckets, index of the first symbol, number of words of the filter, a shift; then the filter, the
// buckets, and for each symbol its hash, of which bit 0 marks the end of a bucket.
ElfW(Sym) * LoadedObject::find_by_gnu_hash(const SymbolName& name) const noexcept {
  constexpr std::uint32_t bits = 8 * sizeof(ElfW(Addr));
  const std::uint32_t hash = name.gnu_hash;
  const std::uint32_t bucket_count = gnu_hash[0];
  const std::uint32_t first = gnu_hash[1];
  const std::uint32_t filter_words = gnu_hash[2];
  const std::uint32_t shift = gnu_hash[3];
  const auto* const filter = reinterpret_cast<const ElfW(Addr)*>(gnu_hash + 4);
  const auto* const buckets = reinterpret_cast<const std::uint32_t*>(filter + filter_words);
  const std::uint32_t* const hashes = buckets + bucket_count;
  if (bucket_count == 0 || filter_words == 0) return nullptr;
  const ElfW(Addr) word = filter[hash / bits % filter_words];
  if (!(word >> hash % bits & word >> (hash >> shift) % bits & 1)) return nullptr;
  std::uint32_t index = buckets[hash % bucket_count];
  if (index < first) return nullptr;
  for (;; ++index) {
    const std::uint32_t other = hashes[index - first];
    if ((other | 1) == (hash | 1))
      if (ElfW(Sym)* const found = defined_as(index, name)) return found;
    if (other & 1) return nullptr;
  }
}

// The table: number of buckets, number of symbols, the buckets, and for each symbol the next one of its bucket.
ElfW(Sym) * LoadedObject::find_by_sysv_hash(const SymbolName& name) const noexcept {
  const std::uint32_t bucket_count = sysv_hash[0];
  if (bucket_count == 0) return nullptr;
  std::uint32_t hash = 0;
  for (const char* c = name.text; *c; ++c) {
    hash = (hash << 4) + static_cast<unsigned char>(*c);
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  const std::uint32_t* const next = sysv_hash + 2 + bucket_count;
  for (std::uint32_t index = sysv_hash[2 + hash % bucket_count]; index != STN_UNDEF; index = next[index])
    if (ElfW(Sym)* const found = defined_as(index, name)) return found;
  return nullptr;
}

}  // namespace bestride::preload
