#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks on one node: MPICH's time over Bestride's.

    bench/run_one_node.py [--build build/release] [--ranks 2] [--rounds 7] [--calls 100] [--bytes 8,64,...] [--only NAME,...] [--form FORM] [--distance near|far] [--table FILE]

Each round runs the program bench/one_node without and with the preload library, in turns. A ratio is taken within a round; the
figure is the median over rounds, between the quartiles. "copy" is the time of a local copy of what a rank receives, the limit.

The processors of a virtual machine may be near each other at one time and far apart at another. --distance: only rounds count in which
the round trip of a cache line between the ranks' processors took less or more than 0.25 us before and after each launch; up to ten times
as many rounds are run.
"""
import os
import statistics
import sys

import launch
import summary

FAR = 0.25e-6  # seconds


def rows_of(text):
    """The rows, and the round trips."""
    rows, trips = {}, []
    for line in text.splitlines():
        if line.startswith("round_trip "):
            trips.append(float(line.split()[1]))
            continue
        name, size, middle, fastest, copy = line.split()
        rows[name, int(size)] = {"middle": float(middle), "fastest": float(fastest), "copy": float(copy)}
    return rows, trips


def measured(comparison, arguments):
    """The rounds that count, and all their round trips."""
    options, rounds, trips = comparison.options, [], []
    for both in comparison.rounds("one_node", rows_of, arguments, count=options.rounds * (10 if options.distance else 1), timeout=600):
        here = both["mpich"][1] + both["bestride"][1]
        if options.distance and not all((trip > FAR) == (options.distance == "far") for trip in here):
            continue
        rounds.append({variant: rows for variant, (rows, _) in both.items()})
        trips += here
        if len(rounds) == options.rounds:
            break
    return rounds, trips


def main():
    comparison = launch.Comparison(__doc__)
    comparison.parser.add_argument("--calls", default="100")
    comparison.parser.add_argument("--bytes", default="")
    comparison.parser.add_argument("--only", default="")
    comparison.parser.add_argument("--form", default="blocking", choices=("blocking", "nonblocking", "persistent"))
    comparison.parser.add_argument("--distance", choices=("near", "far"))
    options = comparison.parse()
    arguments = ["--calls", options.calls, "--form", options.form]
    for name in ("bytes", "only"):
        if getattr(options, name):
            arguments += [f"--{name}", getattr(options, name)]
    if options.ranks <= (os.cpu_count() or 1):
        arguments += ["--distance", "1"]
    elif options.distance:
        sys.exit("--distance needs a processor for each rank")
    rounds, trips = measured(comparison, arguments)
    if not rounds:
        sys.exit(f"the processors were never {options.distance}: run it again at another time")
    comparison.title("microseconds", len(rounds))
    facts = {"round trip of a cache line, us": f"{min(trips) * 1e6:.2f} to {max(trips) * 1e6:.2f}"} if trips else {}
    for name, value in facts.items():
        print(f"{name}: {value}\n")
    print("collective            bytes" + summary.COLUMNS + "        copy")
    table = []
    for key in rounds[0]["mpich"]:
        times, fastest = summary.undisturbed_times([{variant: one[variant][key] for variant in one} for one in rounds], "middle", "fastest")
        copy = 1e6 * statistics.median(one["bestride"][key]["copy"] for one in rounds)
        row = {"collective": key[0], "bytes": key[1], **summary.compared(times, scale=1e6), "fastest": fastest}
        table.append(row)
        print(f"{key[0]:20}{key[1]:8}{summary.columns(row, digits=2)}{copy:11.2f}{'  fastest times' if fastest else ''}")
    comparison.write(table, **facts)


if __name__ == "__main__":
    main()
