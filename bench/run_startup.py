#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the library adds to the start of a program (of two ranks).

    bench/run_startup.py [--build build/release] [--ranks 2] [--rounds 25] [--profile FILE] [--json FILE]

Times, in turns: of the whole command, and of MPI_Init in the slower rank; medians, and the median of what is added within a turn with its
quartiles. Instructions (callgrind, if it is installed): of the rank that has
fewer, by loaded object. Those of the MPI library include waiting for the other rank.
"""
import argparse
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


def spread(values):
    """Median and quartiles in ms."""
    return [1e3 * number for number in (statistics.median(values), *statistics.quantiles(values, n=4)[::2])]


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


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--profile", default="")
    parser.add_argument("--json", default="")
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
    results = {}
    for name, words in forms.items():
        results[name] = {"median_ms": 1e3 * statistics.median(times[name]), "least_ms": 1e3 * min(times[name]),
                         "init_ms": 1e3 * statistics.median(inits[name])}
        for key, values in (("added_ms", times), ("added_to_init_ms", inits)):
            results[name][key] = spread([own - bare for own, bare in zip(values[name], values["bare"])])
        if shutil.which("valgrind"):
            costs = instructions([*command, *words], program)
            results[name]["instructions"] = {key: value for key, value in costs.most_common() if value > 50_000}
    print(f"{'':16}median ms  least ms  added ms (quartiles)    MPI_Init ms  added ms (quartiles)   million instructions: all, libbestride*, ld.so, libc, libm")
    for name, one in results.items():
        counts = one.get("instructions", {})
        parts = [sum(value for key, value in counts.items() if key.startswith(prefix)) / 1e6
                 for prefix in ("", "libbestride", "ld-linux", "libc.so", "libm.so")]
        added, to_init = ("{:6.2f} ({:5.2f} to {:5.2f})".format(*one[key]) for key in ("added_ms", "added_to_init_ms"))
        print(f"{name:16}{one['median_ms']:9.1f}{one['least_ms']:10.1f}  {added}{one['init_ms']:13.1f}  {to_init}   " + "".join(f"{part:8.2f}" for part in parts))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
