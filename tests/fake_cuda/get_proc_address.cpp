// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress: maps a name and a driver version to the entry with the ABI of that version.
#include <dlfcn.h>

#include <string>

#include "tests/fake_cuda/state.hpp"

using namespace fake;

extern "C" {
#pragma GCC visibility push(default)

Code cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t, int* status) {
  State& s = state();
  *function = nullptr;
  std::string missing;
  int own = 0;
  {
    const std::lock_guard lock(s.mutex);
    missing = s.missing;
    own = s.version;
  }
  if (version <= own && missing != symbol) {
    // Looked up in this object, not in whatever else is loaded.
    Dl_info here{};
    dladdr(reinterpret_cast<void*>(&cuGetProcAddress_v2), &here);
    void* self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    for (const char* form : {"_v2", ""})
      if (!*function && self) *function = dlsym(self, (std::string(symbol) + form).c_str());
    if (self) dlclose(self);
  }
  if (status) *status = *function ? 0 : 1;
  return *function ? code::success : code::not_found;
}

#pragma GCC visibility pop
}
