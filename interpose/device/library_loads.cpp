// SPDX-License-Identifier: Apache-2.0
#include "interpose/device/library_loads.hpp"

#include <dlfcn.h>

#include <climits>
#include <cstddef>
#include <cstring>

namespace bestride::inline interpose {
namespace {

constinit link_map nothing_known{
    .l_addr = 0, .l_name = nullptr, .l_ld = nullptr, .l_next = &nothing_known, .l_prev = nullptr};

/// This object's own entry in the linker's list. It is linked so that it is never unloaded.
const link_map* own_link_map() noexcept {
  static const char here = 0;
  Dl_info info;
  link_map* map = nullptr;
  return dladdr1(&here, &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) ? map : nullptr;
}

struct Last {
  const link_map* from;
  const link_map* entry = nullptr;
  char name[PATH_MAX] = "";
};

/// The list does not change while dl_iterate_phdr runs its callback.
Last find_last_object() noexcept {
  Last last{own_link_map()};
  if (!last.from) return last;
  dl_iterate_phdr(
      [](dl_phdr_info*, std::size_t, void* data) {
        Last& found = *static_cast<Last*>(data);
        found.entry = found.from;
        while (found.entry->l_next) found.entry = found.entry->l_next;
        std::strncpy(found.name, found.entry->l_name, sizeof found.name - 1);
        return 1;
      },
      &last);
  return last;
}

}  // namespace

constinit std::atomic<const link_map*> last_link_map{&nothing_known};

LibraryLoadScope::LibraryLoadScope() noexcept : before_(find_last_object().entry) {}

const link_map* LibraryLoadScope::hold_last_object() const noexcept {
  const Last last = find_last_object();
  if (!last.entry || last.entry == last.from) return last.entry;
  if (last.entry == before_) return nullptr;
  void* const held = dlopen(last.name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (held && dlinfo(held, RTLD_DI_LINKMAP, &map) == 0 && map == last.entry) return map;
  if (held) dlclose(held);
  dlerror();
  return nullptr;
}

}  // namespace bestride::inline interpose
