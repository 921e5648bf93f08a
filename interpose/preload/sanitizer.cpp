// SPDX-License-Identifier: Apache-2.0
// AddressSanitizer's runtime library ends a program at its start if another library precedes it, as a preloaded one
// does. That matters only for libraries that define functions such as malloc(); this one does not. The runtime takes
// its defaults from __asan_default_options(). The program's own definition precedes ours; those of other libraries, and
// the empty one of the runtime, follow it. ASAN_OPTIONS overrides all.
#include <link.h>

#include <cstddef>

#include "interpose/preload/loaded_object.hpp"

namespace bestride::preload {
namespace {

/// What the next definition returns; "" if there is none.
const char* next_defaults() noexcept {
  constexpr SymbolName name("__asan_default_options");
  const link_map* map = own_link_map();
  while (map && (map = map->l_next)) {
    const LoadedObject object(*map);
    const ElfW(Sym)* const symbol = object.find(name);
    if (!symbol) continue;
    const char* const text = reinterpret_cast<const char* (*)()>(object.base + symbol->st_value)();
    return text ? text : "";
  }
  return "";
}

}  // namespace
}  // namespace bestride::preload

extern "C" [[gnu::visibility("default")]] const char* __asan_default_options() {
  static constexpr char ours[] = "verify_asan_link_order=0";
  static char options[1024];
  std::size_t length = 0;
  for (const char* c = ours; *c; ++c) options[length++] = *c;
  options[length++] = ':';
  for (const char* c = bestride::preload::next_defaults(); *c && length != sizeof options - 1; ++c)
    options[length++] = *c;
  options[length] = '\0';
  return options;
}
