#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library adds to the start of a program (of two ranks).

    bench/run_startup.py [--build build/release] [--ranks 2] [--rounds 25] [--profile FILE] [--table FILE]

Times, in turns: of the whole command, and of MPI_Init in the slower rank; medians, and the median of what is added within a turn with its
quartiles. Instructions (callgrind, if it is installed): of the rank that has
fewer, by loaded object. Those of the MPI library include waiting for the other rank.
"""
import collections
import glob
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import launch
import summary


def variants(library, profile):
    preload = ["-genv", "LD_PRELOAD", library]
    found = {"bare": [], "preload": preload, "disabled": [*preload, "-genv", "BESTRIDE_DISABLE", "1"]}
    if profile:
        found["with a profile"] = [*preload, "-genv", "BESTRIDE_PROFILE", os.path.abspath(profile)]
    return found


def run(words):
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0 or "cannot be preloaded" in done.stderr:
        sys.exit(f"exit code {done.returncode} from: {' '.join(words)}\n{done.stderr[-2000:]}")
    return done.stdout


def init_of(output):
    """Seconds of MPI_Init in the slower rank."""
    return 1e-9 * max(json.loads(line)["init"] for line in output.splitlines())


def instructions(words, program):
    """The instructions by object, of the rank that has fewer."""
    with tempfile.TemporaryDirectory() as folder:
        run([*words, "valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/%p", *program])
        return min((costs_of(path) for path in glob.glob(f"{folder}/*")), key=lambda costs: sum(costs.values()))


def costs_of(path):
    """The self cost of each object in callgrind's output."""
    names, costs, current, call = {}, collections.Counter(), "", False
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            if named := re.match(r"c?ob=\((\d+)\)(?: (.*))?", line):
                name = names.setdefault(named[1], os.path.basename((named[2] or "").strip()))
                if line.startswith("ob="):
                    current = name
            elif line.startswith("calls="):
                call = True
            elif cost := re.match(r"[+\-*\d]\S* (\d+)", line):
                costs[current] += 0 if call else int(cost[1])
                call = False
    return costs


OBJECTS = {"all": "", "libbestride": "libbestride", "ld_so": "ld-linux", "libc": "libc.so", "libm": "libm.so"}


def row_of(variant, times, inits, counts):
    """`times`, `inits`: {variant: [seconds per round]}, of the command and of MPI_Init. `counts`: {loaded object: instructions}, or {}."""
    row = {"variant": variant, "command_ms": 1e3 * statistics.median(times[variant]), "least_ms": 1e3 * min(times[variant])}
    for what, values in (("command", times), ("init", inits)):
        if what == "init":
            row["init_ms"] = 1e3 * statistics.median(inits[variant])
        row |= summary.spread(f"{what}_added_ms", [1e3 * (own - bare) for own, bare in zip(values[variant], values["bare"])])
    if counts:
        row |= {f"{name}_minstructions": sum(value for key, value in counts.items() if key.startswith(prefix)) / 1e6 for name, prefix in OBJECTS.items()}
    return {**row, "rounds": len(times[variant])}


def main():
    parser = launch.parser_of(__doc__, rounds=25)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    program = [os.path.join(options.build, "bin", "call_overhead"), "start"]
    command = [launch.mpiexec(), "-n", str(options.ranks)]
    forms = variants(launch.library_of(options.build), options.profile)
    times, inits = collections.defaultdict(list), collections.defaultdict(list)
    for number in range(options.rounds):
        order = list(forms)
        for name in order if number % 2 == 0 else order[::-1]:
            begin = time.monotonic()
            inits[name].append(init_of(run([*command, *forms[name], *program])))
            times[name].append(time.monotonic() - begin)
    rows = []
    print(f"{'':16}median ms  least ms  added ms (quartiles)    MPI_Init ms  added ms (quartiles)   million instructions: all, libbestride*, ld.so, libc, libm")
    for name, words in forms.items():
        row = row_of(name, times, inits, instructions([*command, *words], program) if shutil.which("valgrind") else {})
        rows.append(row)
        added, to_init = (f"{row[key]:6.2f} ({row[key + '_q1']:5.2f} to {row[key + '_q3']:5.2f})" for key in ("command_added_ms", "init_added_ms"))
        print(f"{name:16}{row['command_ms']:9.1f}{row['least_ms']:10.1f}  {added}{row['init_ms']:13.1f}  {to_init}   " +
              "".join(f"{row.get(name + '_minstructions', 0):8.2f}" for name in OBJECTS))
    summary.write_table(options, rows)


if __name__ == "__main__":
    main()
