#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types that are made for one message: bare MPICH, preloaded, and with --other preloaded with another build's library, in turns. `first use` is
what the first MPI_Pack of a new type takes longer than one with a type that is kept: from the commit to a chosen plan."""
import json
import os
import statistics
import subprocess
import sys

import launch
import summary


def run(program, library):
    env = {**os.environ, **({"LD_PRELOAD": library} if library else {})}
    text = subprocess.run([program], env=env, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def rows_of(raw, sizes):
    """One row for each type from {kind: {case: [row per round]}} and {case: bytes}."""
    rows = []
    for case, size in sizes.items():
        bare = [one["packed"] for one in raw["bare"][case]]
        row = {"type": case, "bytes": size, "bare_ns": statistics.median(bare)}
        for kind in [kind for kind in raw if kind != "bare"]:
            ours = raw[kind][case]
            row |= {f"{kind}_ns": statistics.median(one["packed"] for one in ours),
                    **summary.spread(f"{kind}_ratio", [without / one["packed"] for without, one in zip(bare, ours)]),
                    f"{kind}_first_use_ns": statistics.median(one["packed"] - one["made"] - one["kept"] for one in ours)}
        rows.append({**row, "rounds": len(bare)})
    return rows


def main():
    parser = launch.parser_of(__doc__, rounds=9)
    parser.add_argument("--other", help="libbestride.so of another build")
    options = parser.parse_args()
    libraries = {"bare": None, "bestride": launch.library_of(options.build)}
    if options.other:
        libraries["other"] = os.path.abspath(options.other)
    raw = {kind: {} for kind in libraries}
    sizes = {}
    for _ in range(options.rounds):
        for kind, library in libraries.items():
            for row in run(os.path.join(options.build, "bin", "new_types"), library):
                sizes[row["case"]] = row["bytes"]
                raw[kind].setdefault(row["case"], []).append(row)
    rows = rows_of(raw, sizes)
    ours = [kind for kind in libraries if kind != "bare"]
    print(f"{'make, commit, pack, free; ns':40} {'bytes':>6} {'bare':>8}" + "".join(f" {kind:>9} {'faster':>7} {'first use':>10}" for kind in ours))
    for row in rows:
        print(f"{row['type']:40} {row['bytes']:6} {row['bare_ns']:8.0f}" +
              "".join(f" {row[f'{kind}_ns']:9.0f} {row[f'{kind}_ratio']:7.2f} {row[f'{kind}_first_use_ns']:10.0f}" for kind in ours))
    summary.write_table(options, rows)


if __name__ == "__main__":
    sys.exit(main())
