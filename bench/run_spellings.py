#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gain of each call with (buffer, count, type) from an equivalent type that the MPI library handles faster: written by hand without the
preload library, and with the preload library. Ratios of times per call, within a launch for the former and within a round for the latter;
medians over rounds."""
import json
import os
import statistics
import sys

import summary
from launch import launch, library_of, parser_of, rounds_of

SIDES = ("send", "receive", "both")  # where the equivalent type is written by hand


def key(row):
    return row["call"], row["shape"], row["bytes"]


def rows_of(rounds):
    """One row for each call, shape and size from [{variant: [row of the program]} per round]. "ratio": preloaded."""
    by_hand, preloaded = {}, {}
    for pair in rounds:
        ours = {key(row): row["forward_us"] for row in pair["bestride"]}
        for row in pair["mpich"]:
            by_hand.setdefault(key(row), []).append([row["forward_us"] / row[f"{side}_us"] for side in SIDES])
            preloaded.setdefault(key(row), []).append(row["forward_us"] / ours[key(row)])
    return [{"call": call, "shape": shape, "bytes": size, **{side: statistics.median(column) for side, column in zip(SIDES, zip(*by_hand[call, shape, size]))},
             **summary.spread("ratio", preloaded[call, shape, size])} for call, shape, size in by_hand]


def table_of(rows):
    """One row for each call and size, with the ratios of each shape: by hand at both ends, and preloaded."""
    table = {}
    for row in rows:
        shape = row["shape"].replace(" ", "_")
        table.setdefault((row["call"], row["bytes"]), {"call": row["call"], "bytes": row["bytes"]}).update(
            {f"{shape}_by_hand": row["both"], shape: row["ratio"], f"{shape}_q1": row["ratio_q1"], f"{shape}_q3": row["ratio_q3"]})
    return list(table.values())


def main():
    parser = parser_of(__doc__, rounds=5)
    parser.add_argument("calls", nargs="*", help="prefixes of names (all)")
    parser.add_argument("--seconds", type=float, default=0.02)
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.build), "bin", "spellings")
    library = library_of(options.build)
    rounds = []
    for order in rounds_of(options.rounds):
        rounds.append({})
        for variant in order:
            text = launch(variant, library, program, ["--seconds", str(options.seconds), *options.calls], timeout=300)
            rounds[-1][variant] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    rows = rows_of(rounds)
    found = {key(row): row for row in rows}
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    print("by hand: sending side, receiving side, both; then with the preload library")
    for size in sorted({row["bytes"] for row in rows}):
        print(f"\n{size} bytes{'':24}" + "".join(f"{shape:>30}" for shape in shapes))
        for call in dict.fromkeys(row["call"] for row in rows):
            cells = [found.get((call, shape, size)) for shape in shapes]
            print(f"{call:34}" + "".join(f"{'{send:5.2f} {receive:5.2f} {both:5.2f} {ratio:7.2f}'.format(**one) if one else '':>30}" for one in cells))
    summary.write_table(options, table_of(rows), rounds=options.rounds)


if __name__ == "__main__":
    sys.exit(main())
