#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Derived datatypes in partitioned messages, one-sided calls and the MPI library's own collectives: MPICH's time over Bestride's.

    bench/run_typed_calls.py [--build build/release] [--rounds 9] [--table FILE]

Each round runs the program bench/typed_calls without and with the preload library, in turns, on two ranks. Collectives are left to the MPI
library (BESTRIDE_COLLECTIVES=library), so that only what packs its messages differs. A ratio is taken within a round; the figure is the median
over rounds, between the quartiles.
"""
import os

import launch
import summary


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        call, layout, size, middle, fastest = line.split()
        rows[call, layout, int(size)] = {"middle": float(middle), "fastest": float(fastest)}
    return rows


def main():
    comparison = launch.Comparison(__doc__, rounds=9, choices=[2])
    comparison.parse()
    os.environ["BESTRIDE_COLLECTIVES"] = "library"
    rounds = list(comparison.rounds("typed_calls", rows_of))
    comparison.title("microseconds")
    print(f"{'call':12}{'blocks':12}{'bytes':>9}" + summary.COLUMNS)
    table = []
    for key in rounds[0]["mpich"]:
        times, fastest = summary.undisturbed_times([{variant: one[variant][key] for variant in one} for one in rounds], "middle", "fastest")
        row = {"call": key[0], "layout": key[1], "bytes": key[2], **summary.compared(times, scale=1e6), "fastest": fastest}
        table.append(row)
        print(f"{key[0]:12}{key[1]:12}{key[2]:9}{summary.columns(row)}{'  fastest times' if fastest else ''}")
    comparison.write(table)


if __name__ == "__main__":
    main()
