#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More ranks than processors: MPICH's time over Bestride's, for patterns in which ranks wait for each other.

    bench/run_crowded.py [--build build/release] [--ranks 4] [--rounds 5] [--calls 60] [--json FILE]

Each round runs the program bench/crowded without and with the preload library, in turns. A ratio is taken within a round; the
figure is the median over rounds, between the quartiles. "limit" is the compute time of all ranks over the number of processors.
"""
import argparse
import json
import os
import statistics

import launch


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, size, compute, seconds = line.split()
        rows[name, int(size), float(compute)] = float(seconds)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", default="60")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = launch.library_of(options.build)
    program = os.path.join(options.build, "bin", "crowded")
    processors = len(os.sched_getaffinity(0))
    rounds = [{variant: rows_of(launch.launch(variant, library, program, ["--calls", options.calls], options.ranks, 600)) for variant in order}
              for order in launch.rounds_of(options.rounds)]
    print(f"{options.ranks} ranks, {processors} processors; microseconds a round\n")
    print("pattern           bytes   compute       limit      MPICH   Bestride   ratio  quartiles")
    table = []
    for key in rounds[0]["mpich"]:
        name, size, compute = key
        times = {variant: [one[variant][key] for one in rounds] for variant in launch.VARIANTS}
        ratios = sorted(launch.ratios(times))
        quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        working = options.ranks - 1 if name == "tasks" else options.ranks
        row = {"pattern": name, "bytes": size, "compute": compute, "limit": compute * working / min(processors, working),
               "mpich": statistics.median(times["mpich"]), "bestride": statistics.median(times["bestride"]),
               "ratio": statistics.median(ratios), "quartiles": [quarters[0], quarters[2]]}
        table.append(row)
        print(f"{name:15}{size:8}{compute * 1e6:10.0f}{row['limit'] * 1e6:12.0f}{row['mpich'] * 1e6:11.1f}{row['bestride'] * 1e6:11.1f}"
              f"{row['ratio']:8.2f}  {quarters[0]:.2f} to {quarters[2]:.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "processors": processors, "cases": table}, file, indent=1)


if __name__ == "__main__":
    main()
