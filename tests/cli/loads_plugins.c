/* SPDX-License-Identifier: Apache-2.0 */
/* A host of plugins, as python is: linked with no MPI, but what it loads may be. */
#include <dlfcn.h>

int main(int argc, char** argv) { return argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); }
