#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The memory that the library adds to a rank, by the number of ranks on the host.

    bench/run_memory.py [--build build/release] [--ranks 1,2,4,8] [--rounds 3] [--profile FILE] [--table FILE]

MiB, mean over the ranks, median over the rounds: after MPI_Init ("start"), and after messages and collectives ("used"); in proportion (pages
that several processes map are divided among them) and of the process alone. The launcher's processes do not map the library.
"""
import json
import os
import statistics

import launch
import summary
from run_startup import run, variants


def row_of(samples, ranks, variant, stage, bare):
    """MiB, from the ranks' lines of each round; `bare`: the row without the library, or None."""
    row = {"ranks": ranks, "variant": variant, "stage": stage}
    for kind in ("proportional", "own"):
        means = [statistics.fmean(sample[f"{kind}_kib"] for sample in one if sample["stage"] == stage) for one in samples]
        row[f"{kind}_mib"] = statistics.median(means) / 1024
        row[f"{kind}_added_mib"] = row[f"{kind}_mib"] - (bare or row)[f"{kind}_mib"]
    return {**row, "rounds": len(samples)}


def main():
    parser = launch.parser_of(__doc__, rounds=3)
    parser.add_argument("--ranks", default="1,2,4,8")
    parser.add_argument("--profile", default="")
    options = parser.parse_args()
    program = os.path.join(options.build, "bin", "memory")
    rows = []
    print(f"{'ranks':>5} {'variant':16} {'stage':6} {'proportional':>13} {'added':>7} {'own':>7} {'added':>7}")
    for ranks in map(int, options.ranks.split(",")):
        bare = {}
        for name, words in variants(launch.library_of(options.build), options.profile).items():
            samples = [[json.loads(line) for line in run([launch.mpiexec(), "-n", str(ranks), *words, program]).splitlines()]
                       for _ in range(options.rounds)]
            for stage in ("start", "used"):
                row = row_of(samples, ranks, name, stage, bare.get(stage))
                bare.setdefault(stage, row)
                rows.append(row)
                print("{ranks:5} {variant:16} {stage:6} {proportional_mib:13.2f} {proportional_added_mib:7.2f} {own_mib:7.2f} {own_added_mib:7.2f}".format(**row))
    summary.write_table(options, rows)


if __name__ == "__main__":
    main()
