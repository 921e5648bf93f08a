#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks on one node: MPICH's time over Bestride's.

    bench/run_one_node.py [--build build/release] [--ranks 2] [--rounds 7] [--calls 100] [--bytes 8,64,...] [--only NAME,...] [--form FORM] [--json FILE]

Each round runs the program bench/one_node without and with the preload library, in turns. A ratio is taken within a round; the
figure is the median over rounds, between the quartiles. "copy" is the time of a local copy of what a rank receives, the limit.
"""
import argparse
import json
import os
import statistics

import launch


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, size, middle, fastest, copy = line.split()
        rows[name, int(size)] = {"middle": float(middle), "fastest": float(fastest), "copy": float(copy)}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", default="100")
    parser.add_argument("--bytes", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--form", default="blocking", choices=("blocking", "nonblocking", "persistent"))
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = launch.library_of(options.build)
    program = os.path.join(options.build, "bin", "one_node")
    arguments = ["--calls", options.calls, "--form", options.form]
    for name in ("bytes", "only"):
        if getattr(options, name):
            arguments += [f"--{name}", getattr(options, name)]
    rounds = [{variant: rows_of(launch.launch(variant, library, program, arguments, options.ranks, 600)) for variant in order}
              for order in launch.rounds_of(options.rounds)]
    print(f"{options.ranks} ranks, {os.cpu_count()} processors; microseconds\n")
    print("collective            bytes      MPICH   Bestride   ratio  quartiles        copy")
    table = []
    for key in rounds[0]["mpich"]:
        times, fastest = launch.undisturbed_times([{variant: one[variant][key] for variant in one} for one in rounds], "middle", "fastest")
        ratios = sorted(launch.ratios(times))
        quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        row = {"collective": key[0], "bytes": key[1], "mpich": statistics.median(times["mpich"]), "bestride": statistics.median(times["bestride"]),
               "ratio": statistics.median(ratios), "quartiles": [quarters[0], quarters[2]], "rounds": len(ratios), "fastest": fastest,
               "copy": statistics.median(one["bestride"][key]["copy"] for one in rounds)}
        table.append(row)
        print(f"{key[0]:20}{key[1]:8}{row['mpich'] * 1e6:11.2f}{row['bestride'] * 1e6:11.2f}{row['ratio']:8.2f}  {quarters[0]:.2f} to {quarters[2]:.2f}"
              f"{row['copy'] * 1e6:11.2f}{'  fastest times' if fastest else ''}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "cases": table}, file, indent=1)


if __name__ == "__main__":
    main()
