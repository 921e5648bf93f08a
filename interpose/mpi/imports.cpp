// SPDX-License-Identifier: Apache-2.0
#include "interpose/mpi/imports.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace bestride::inline interpose {
namespace {

#if defined(__x86_64__)
constexpr unsigned jump_slot = R_X86_64_JUMP_SLOT, address_slot = R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
constexpr unsigned jump_slot = R_AARCH64_JUMP_SLOT, address_slot = R_AARCH64_GLOB_DAT;
#else
constexpr unsigned jump_slot = ~0u, address_slot = ~0u;
#endif

/// One object's symbols and relocations, from its dynamic section.
struct Dynamic {
  ElfW(Addr) base = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const ElfW(Rela) * jumps = nullptr;
  std::size_t jump_bytes = 0;
  const ElfW(Rela) * others = nullptr;
  std::size_t other_bytes = 0;
};

Dynamic read_dynamic(ElfW(Addr) base, const ElfW(Dyn) * section) noexcept {
  Dynamic found;
  found.base = base;
  bool with_addends = true;
  for (const ElfW(Dyn)* entry = section; entry->d_tag != DT_NULL; ++entry) {
    const ElfW(Addr) address = entry->d_un.d_ptr;
    switch (entry->d_tag) {
      case DT_SYMTAB: found.symbols = reinterpret_cast<const ElfW(Sym)*>(address); break;
      case DT_STRTAB: found.names = reinterpret_cast<const char*>(address); break;
      case DT_JMPREL: found.jumps = reinterpret_cast<const ElfW(Rela)*>(address); break;
      case DT_PLTRELSZ: found.jump_bytes = entry->d_un.d_val; break;
      case DT_RELA: found.others = reinterpret_cast<const ElfW(Rela)*>(address); break;
      case DT_RELASZ: found.other_bytes = entry->d_un.d_val; break;
      case DT_PLTREL: with_addends = entry->d_un.d_val == DT_RELA; break;
      default: break;
    }
  }
  if (!with_addends) found.jumps = nullptr;
  return found;
}

std::atomic<void*>* find_slot(const Dynamic& object, const char* function, const ElfW(Rela) * table,
                              std::size_t bytes) noexcept {
  if (!table || !object.symbols || !object.names) return nullptr;
  for (std::size_t i = 0; i < bytes / sizeof *table; ++i) {
    const auto type = static_cast<unsigned>(ELF64_R_TYPE(table[i].r_info));
    if (type != jump_slot && type != address_slot) continue;
    const ElfW(Sym)& symbol = object.symbols[ELF64_R_SYM(table[i].r_info)];
    if (std::strcmp(object.names + symbol.st_name, function) == 0)
      return reinterpret_cast<std::atomic<void*>*>(object.base + table[i].r_offset);
  }
  return nullptr;
}

/// The object's GOT slot for `function`; nullptr if it has none.
std::atomic<void*>* find_slot(const Dynamic& object, const char* function) noexcept {
  std::atomic<void*>* const slot = find_slot(object, function, object.jumps, object.jump_bytes);
  return slot ? slot : find_slot(object, function, object.others, object.other_bytes);
}

struct Relro {
  std::uintptr_t inside;
  std::uintptr_t begin = 0, end = 0;  ///< the range that the loader made read-only; may be empty
};

int find_relro(dl_phdr_info* info, std::size_t, void* argument) noexcept {
  auto& wanted = *static_cast<Relro*>(argument);
  bool contains = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD) contains |= wanted.inside >= begin && wanted.inside < end;
    if (header.p_type == PT_GNU_RELRO) wanted.begin = begin, wanted.end = end;
  }
  if (contains) return 1;
  wanted.begin = wanted.end = 0;
  return 0;
}

/// What happens to the protection of a page that the loader made read-only.
enum class Afterwards { read_only, writable };

/// Stores into a slot. False if it can't be written.
bool store(std::atomic<void*>* slot, void* target, Afterwards afterwards) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(slot);
  Relro relro{.inside = address};
  dl_iterate_phdr(find_relro, &relro);
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  // The loader leaves the last page writable if other data begin there.
  const bool read_only = address >= relro.begin / page * page && address < relro.end / page * page;
  auto* const first = reinterpret_cast<void*>(address / page * page);
  if (read_only && mprotect(first, page, PROT_READ | PROT_WRITE) != 0) return false;
  slot->store(target, std::memory_order_release);
  if (read_only && afterwards == Afterwards::read_only) mprotect(first, page, PROT_READ);
  return true;
}

/// A function that is replaced in all objects.
struct Everywhere {
  const char* function;
  void* replacement;
  std::uintptr_t except;  ///< an address in an object that is left out
};

/// The loader's lock is held, so the object stays loaded. Another thread may still be relocating it, so its pages
/// remain writable.
int replace_in(dl_phdr_info* info, std::size_t, void* argument) noexcept {
  const auto& wanted = *static_cast<const Everywhere*>(argument);
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    // The loader puts no addresses into a section that is read-only, such as that of the kernel's object.
    if (header.p_type == PT_DYNAMIC && (header.p_flags & PF_W)) dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (header.p_type == PT_LOAD && wanted.except >= begin && wanted.except < begin + header.p_memsz) return 0;
  }
  if (!dynamic) return 0;
  if (std::atomic<void*>* const slot = find_slot(read_dynamic(info->dlpi_addr, dynamic), wanted.function))
    store(slot, wanted.replacement, Afterwards::writable);
  return 0;
}

}  // namespace

void* find_function(const void* inside, const char* function) noexcept {
  void* found = dlsym(RTLD_DEFAULT, function);
  Dl_info info;
  if (!found && dladdr(inside, &info))
    if (void* const handle = dlopen(info.dli_fname, RTLD_NOLOAD | RTLD_LAZY)) {
      found = dlsym(handle, function);
      dlclose(handle);
    }
  if (!found) dlerror();
  return found;
}

void* replace_import(const void* inside, const char* function, void* replacement, void** original) noexcept {
  Dl_info info;
  link_map* map = nullptr;
  if (!dladdr1(inside, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) || !map) return nullptr;
  std::atomic<void*>* const slot = find_slot(read_dynamic(map->l_addr, map->l_ld), function);
  if (!slot) return nullptr;
  void* before = slot->load(std::memory_order_acquire);
  // Until the first call of a lazily bound function, its slot points into the object's own PLT, to code that binds it.
  Dl_info target;
  if (!dladdr(before, &target) || target.dli_fbase == info.dli_fbase) before = find_function(inside, function);
  if (!before) return nullptr;
  *original = before;
  return store(slot, replacement, Afterwards::read_only) ? before : nullptr;
}

void replace_imports(const char* function, void* replacement) noexcept {
  Everywhere wanted{function, replacement, reinterpret_cast<std::uintptr_t>(&replace_imports)};
  dl_iterate_phdr(replace_in, &wanted);
}

}  // namespace bestride::inline interpose
