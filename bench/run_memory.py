#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory that the library adds to a rank, by the number of ranks on the host.

    bench/run_memory.py [--build build/release] [--ranks 1,2,4,8] [--rounds 3] [--profile FILE] [--json FILE]

MiB, mean over the ranks, median over the rounds: after MPI_Init ("start"), and after messages and collectives ("used"); in proportion (pages
that several processes map are divided among them) and of the process alone. The launcher's processes do not map the library.
"""
import argparse
import json
import os
import statistics

import launch
from run_startup import run, variants


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--profile", default="")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "memory")
    raw = []
    print(f"{'ranks':>5} {'variant':16} {'stage':6} {'proportional':>13} {'added':>7} {'own':>7} {'added':>7}")
    for ranks in map(int, options.ranks.split(",")):
        bare = {}
        for name, words in variants(launch.library_of(options.build), options.profile).items():
            rows = []
            for number in range(options.rounds):
                for line in run([launch.mpiexec(), "-n", str(ranks), *words, program]).splitlines():
                    rows.append({"ranks": ranks, "variant": name, "round": number, **json.loads(line)})
            raw += rows
            for stage in ("start", "used"):
                found = []
                for key in ("proportional_kib", "own_kib"):
                    means = [statistics.fmean(row[key] for row in rows if row["stage"] == stage and row["round"] == number)
                             for number in range(options.rounds)]
                    found.append(statistics.median(means) / 1024)
                bare.setdefault(stage, found)
                columns = "".join(f" {value:{width}.2f} {value - first:7.2f}" for value, first, width in zip(found, bare[stage], (13, 7)))
                print(f"{ranks:5} {name:16} {stage:6}{columns}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(raw, file, indent=0)


if __name__ == "__main__":
    main()
