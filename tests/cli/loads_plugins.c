/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads plugins, like Python. It is not linked with MPI, but its plugins may be. */
#include <dlfcn.h>

#ifdef WITH_ASAN_OPTIONS
const char* __asan_default_options(void) { return "detect_leaks=0"; }
#endif

int main(int argc, char** argv) { return argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); }
