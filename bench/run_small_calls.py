#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of eight bytes and types made for one message: MPICH's time over the time with the library, with and without recording.

    bench/run_small_calls.py [--build build/release] [--ranks 2] [--rounds 9] [--only NAME,...] [--time middle|fastest] [--other LIBRARY] [--json FILE]

Each round runs the program bench/small_calls bare, preloaded, and preloaded with BESTRIDE_RECORD=off, in turns. A ratio is taken within a
round; the figure is the median over rounds, between the quartiles. "recording" is the difference of the last two variants for each call, also
within a round. --ranks 1: messages to itself, so that no wait for another process is in the figures. --time fastest: the least time of each launch
instead of its median, for a machine on which other work runs. --other: another build's libbestride.so instead of the variant without recording.
"""
import argparse
import json
import os
import statistics

import launch


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, calls, middle, fastest = line.split()
        rows[name] = {"calls": int(calls), "middle": float(middle), "fastest": float(fastest)}
    return rows


def quarters_of(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": middle, "quartiles": [low, high]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=2, choices=(1, 2))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    parser.add_argument("--other", default="")
    parser.add_argument("--time", default="middle", choices=("middle", "fastest"))
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = launch.library_of(options.build)
    program = os.path.join(options.build, "bin", "small_calls")
    third = "other" if options.other else launch.UNRECORDED
    libraries = {"mpich": None, "bestride": library, third: os.path.abspath(options.other) if options.other else library}
    arguments = ["--only", options.only] if options.only else []
    rounds = [{variant: rows_of(launch.launch(variant, libraries[variant], program, arguments, options.ranks)) for variant in order}
              for order in launch.rounds_of(options.rounds, tuple(libraries))]
    print(f"{options.ranks} ranks, {options.rounds} rounds; nanoseconds a round of the pattern; added by recording: a call\n")
    print(f"pattern               calls     MPICH  Bestride  ratio  quartiles     {third:>10}  ratio  quartiles       added a call")
    table = []
    for name, first in rounds[0]["mpich"].items():
        times = {variant: [one[variant][name][options.time] for one in rounds] for variant in libraries}
        row = {"pattern": name, "calls": first["calls"], "rounds": options.rounds, "mpich": statistics.median(times["mpich"])}
        for variant in ("bestride", third):
            row[variant] = {"time": statistics.median(times[variant]),
                            "ratio": quarters_of([bare / ours for bare, ours in zip(times["mpich"], times[variant])])}
        row["recording"] = quarters_of([(on - off) / first["calls"] for on, off in zip(times["bestride"], times[third])])
        table.append(row)
        line = f"{name:22}{row['calls']:5}{row['mpich']:10.0f}"
        for variant in ("bestride", third):
            ratio = row[variant]["ratio"]
            line += f"{row[variant]['time']:10.0f}{ratio['median']:7.2f}  {ratio['quartiles'][0]:.2f} to {ratio['quartiles'][1]:.2f}"
        print(line + f"{row['recording']['median']:10.1f}  {row['recording']['quartiles'][0]:.1f} to {row['recording']['quartiles'][1]:.1f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "cases": table}, file, indent=1)


if __name__ == "__main__":
    main()
