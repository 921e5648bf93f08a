#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls of eight bytes and types made for one message: MPICH's time over the time with the library, with and without recording.

    bench/run_small_calls.py [--build build/release] [--ranks 2] [--rounds 9] [--only NAME,...] [--time middle|fastest] [--other LIBRARY] [--table FILE]

Each round runs the program bench/small_calls bare, preloaded, and preloaded with BESTRIDE_RECORD=off, in turns. A ratio is taken within a
round; the figure is the median over rounds, between the quartiles. "recording" is the difference of the last two variants for each call, also
within a round. --ranks 1: messages to itself, so that no wait for another process is in the figures. --time fastest: the least time of each launch
instead of its median, for a machine on which other work runs. --other: another build's libbestride.so instead of the variant without recording.
"""
import os
import statistics

import launch
import summary


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, calls, middle, fastest = line.split()
        rows[name] = {"calls": int(calls), "middle": float(middle), "fastest": float(fastest)}
    return rows


def main():
    comparison = launch.Comparison(__doc__, rounds=9, choices=(1, 2))
    comparison.parser.add_argument("--only", default="")
    comparison.parser.add_argument("--other", default="")
    comparison.parser.add_argument("--time", default="middle", choices=("middle", "fastest"))
    options = comparison.parse()
    third = "other" if options.other else launch.UNRECORDED
    libraries = {"mpich": None, "bestride": comparison.library, third: os.path.abspath(options.other) if options.other else comparison.library}
    rounds = list(comparison.rounds("small_calls", rows_of, ["--only", options.only] if options.only else [], libraries))
    comparison.title("nanoseconds a round of the pattern; added by recording: a call")
    print(f"pattern               calls     MPICH  Bestride  ratio  quartiles     {third:>10}  ratio  quartiles       added a call")
    table = []
    for name, first in rounds[0]["mpich"].items():
        times = {variant: [one[variant][name][options.time] for one in rounds] for variant in libraries}
        row = {"pattern": name, "calls": first["calls"], "mpich_ns": statistics.median(times["mpich"])}
        line = f"{name:22}{row['calls']:5}{row['mpich_ns']:10.0f}"
        for variant in ("bestride", third):
            ratio = f"{variant}_ratio"
            row |= {f"{variant}_ns": statistics.median(times[variant]), **summary.spread(ratio, summary.ratios(times, below=variant))}
            line += f"{row[f'{variant}_ns']:10.0f}{row[ratio]:7.2f}  {row[f'{ratio}_q1']:.2f} to {row[f'{ratio}_q3']:.2f}"
        row |= summary.spread("recording_ns", [(on - off) / first["calls"] for on, off in zip(times["bestride"], times[third])])
        table.append({**row, "rounds": options.rounds})
        print(line + f"{row['recording_ns']:10.1f}  {row['recording_ns_q1']:.1f} to {row['recording_ns_q3']:.1f}")
    comparison.write(table)


if __name__ == "__main__":
    main()
