#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the exported symbols, undefined symbols and needed libraries of an object with short lists.

  check_symbols.py preload LIBRARY FUNCTIONS_TSV   libbestride.so exports exactly the table, its PMPI_ twins and two other symbols
  check_symbols.py backend LIBRARY                 a backend exports one symbol and has no undefined MPI symbol
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "interpose", "preload"))
import generate

# libdl and libpthread are empty or absent with glibc 2.34 or newer.
PRELOAD_NEEDS = r"libc\.so\.6|libdl\.so\.2|ld-linux.*"
BACKEND_NEEDS = PRELOAD_NEEDS + r"|libm\.so\.6|libpthread\.so\.0|librt\.so\.1"
PRELOAD_UNDEFINED = set("""
    __cxa_finalize __errno_location __gmon_start__ _ITM_deregisterTMCloneTable _ITM_registerTMCloneTable __stack_chk_fail
    __snprintf_chk __vsnprintf_chk __strcpy_chk
    _r_debug access clock_gettime pthread_setcancelstate dl_iterate_phdr dladdr dladdr1 dlclose dlerror dlinfo dlopen dlsym getenv memcpy snprintf strchr strcmp strcpy
    strcasecmp strlen strncmp strrchr syscall vsnprintf write""".split())
# A backend contains its C++ runtime. It may not have undefined symbols of MPI, CUDA or the C++ library.
BACKEND_UNDEFINED_NEVER = r"P?MPIX?_|mpi_|ompi_|MPIR_|cu[A-Z]|cuda|_ZNSt|_ZNKSt|_ZSt|__cxa_throw|__gxx_personality"


def nm(library, which):
    lines = subprocess.run(["nm", "-D", "-P", which, library], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return {line.split()[0].split("@")[0] for line in lines}


def needed(library):
    text = subprocess.run(["readelf", "-d", "-W", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", text))


def versions(library):
    text = subprocess.run(["readelf", "-V", "-W", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    return {int(number) for number in re.findall(r"Name: .* Version: ([0-9]+)$", text, re.M)}


def main(kind, library, table=None):
    wrong = []
    exported, undefined = nm(library, "--defined-only"), nm(library, "--undefined-only")
    if kind == "preload":
        expected = set(generate.symbols(generate.read_table(table))) | set(generate.OWN_SYMBOLS)
        wrong += [f"undefined and not on the list: {name}" for name in sorted(undefined - PRELOAD_UNDEFINED)]
        if 3 not in versions(library):  # interpose/preload/visibility.cpp gives hidden symbols this version
            wrong.append("has fewer than two versions of other libraries")
        needs = PRELOAD_NEEDS
    else:
        expected = {"bestride_backend_open"}
        wrong += [f"may not be undefined: {name}" for name in sorted(undefined) if re.match(BACKEND_UNDEFINED_NEVER, name)]
        needs = BACKEND_NEEDS
    wrong += [f"exported and not expected: {name}" for name in sorted(exported - expected)]
    wrong += [f"expected and not exported: {name}" for name in sorted(expected - exported)]
    wrong += [f"needs {name}" for name in sorted(needed(library)) if not re.fullmatch(needs, name)]
    print("\n".join(wrong) if wrong else f"{len(exported)} exported, {len(undefined)} undefined")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
