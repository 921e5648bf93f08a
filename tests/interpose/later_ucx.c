// SPDX-License-Identifier: Apache-2.0
// Preloaded: Bestride sees UCX 2.0. UCX itself, which compares its version with the caller's, does not.
#include <dlfcn.h>
#include <string.h>

typedef void version_function(unsigned* major, unsigned* minor, unsigned* release);

__attribute__((visibility("default"))) void ucp_get_version(unsigned* major, unsigned* minor, unsigned* release) {
  Dl_info caller;
  const int known = dladdr(__builtin_return_address(0), &caller);
  ((version_function*)dlsym(RTLD_NEXT, "ucp_get_version"))(major, minor, release);
  if (!known || !strstr(caller.dli_fname, "libbestride")) return;
  *major = 2;
  *minor = 0;
}
