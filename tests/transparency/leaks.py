#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""leaks.py TOLERATED LIBRARY command...: checks that the heap grows no more per round of the command with LIBRARY preloaded than without, and that what
LIBRARY itself allocates does not grow at all.

The command prints "grown X bytes a round" and, with LIBRARY, "allocated by the library: X bytes a round". Without the preload library, MPICH 4.0.2
leaks 64 bytes per datatype in about half of all runs and nothing in the others, and about 900 bytes per nonblocking collective (measured), so the
minimum over several runs is used, and only the second figure shows a leak of the library that is smaller than MPICH's own. TOLERATED is in bytes a
round: 16 is less than one smallest malloc block every two rounds.
"""
import os
import re
import subprocess
import sys

BARE_RUNS = 3
MOST_PRELOADED_RUNS = 12


def grown(command, preload):
    """Growth of the whole heap and of the library's part (None without one), in bytes a round."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload:
        command = command[:1] + ["-genv", "LD_PRELOAD", preload] + command[1:]
    ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    found = re.search(r"^grown (-?[0-9.]+) bytes a round", ran.stdout, re.MULTILINE)
    own = re.search(r"^allocated by the library: (-?[0-9.]+) bytes a round", ran.stdout, re.MULTILINE)
    if ran.returncode != 0 or not found or bool(own) != bool(preload):
        sys.exit(f"exit status {ran.returncode}\n{ran.stdout}")
    return float(found.group(1)), float(own.group(1)) if own else None


def main():
    tolerated, library, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    bare = min(grown(command, None)[0] for _ in range(BARE_RUNS))
    preloaded, own = [], []
    while len(preloaded) < MOST_PRELOADED_RUNS and (not preloaded or preloaded[-1] > bare + tolerated):
        whole, library_part = grown(command, library)
        preloaded.append(whole)
        own.append(library_part)
    print(f"bytes per round: without {bare}, preloaded {preloaded}, of them allocated by the library {own}")
    return 0 if preloaded[-1] <= bare + tolerated and max(own) <= tolerated else 1


if __name__ == "__main__":
    sys.exit(main())
