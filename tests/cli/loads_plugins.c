/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads plugins, as Python does: not linked with MPI, though its plugins may be. */
#include <dlfcn.h>

int main(int argc, char** argv) { return argc > 1 && !dlopen(argv[1], RTLD_NOW | RTLD_LOCAL); }
