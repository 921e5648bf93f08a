/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is not linked with MPI, like Python: it opens the plugin that its argument names with RTLD_LOCAL and
 * calls it. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char** argv) {
  void* plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!plugin) {
    puts(dlerror());
    return 2;
  }
  int (*make_calls)(int*, char***) = (int (*)(int*, char***))dlsym(plugin, "make_calls");
  return make_calls ? make_calls(&argc, &argv) : 3;
}
