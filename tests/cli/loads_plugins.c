/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads plugins, like Python. It is not linked with MPI, but its plugins may be. */
#include <dlfcn.h>

int main(int argc, char** argv) { return argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); }
