#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""More ranks than processors: MPICH's time over Bestride's, for patterns in which ranks wait for each other.

    bench/run_crowded.py [--build build/release] [--ranks 4] [--rounds 5] [--calls 60] [--table FILE]

Each round runs the program bench/crowded without and with the preload library, in turns. A ratio is taken within a round; the
figure is the median over rounds, between the quartiles. "limit" is the compute time of all ranks over the number of processors.
"""
import os

import launch
import summary


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, size, compute, seconds = line.split()
        rows[name, int(size), float(compute)] = float(seconds)
    return rows


def main():
    comparison = launch.Comparison(__doc__, ranks=4, rounds=5)
    comparison.parser.add_argument("--calls", default="60")
    options = comparison.parse()
    processors = len(os.sched_getaffinity(0))
    rounds = list(comparison.rounds("crowded", rows_of, ["--calls", options.calls], timeout=600))
    comparison.title("microseconds a round")
    print("pattern           bytes   compute       limit" + summary.COLUMNS)
    table = []
    for key in rounds[0]["mpich"]:
        name, size, compute = key
        times = {variant: [one[variant][key] for one in rounds] for variant in launch.VARIANTS}
        working = options.ranks - 1 if name == "tasks" else options.ranks
        limit = compute * working / min(processors, working)
        row = {"pattern": name, "bytes": size, "compute_us": compute * 1e6, "limit_us": limit * 1e6, **summary.compared(times, scale=1e6)}
        table.append(row)
        print(f"{name:15}{size:8}{compute * 1e6:10.0f}{row['limit_us']:12.0f}{summary.columns(row)}")
    comparison.write(table, processors=processors)


if __name__ == "__main__":
    main()
