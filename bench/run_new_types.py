#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types that are made for one message: bare MPICH, preloaded, and with --other preloaded with another build's library, in turns. `first use` is
what the first MPI_Pack of a new type takes longer than one with a type that is kept: from the commit to a chosen plan."""
import argparse
import json
import os
import statistics
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))


def run(program, library):
    env = {**os.environ, **({"LD_PRELOAD": library} if library else {})}
    text = subprocess.run([program], env=env, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default=os.path.join(here, "..", "build", "release"))
    options.add_argument("--other", help="libbestride.so of another build")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--json", help="write the raw figures to this file")
    arguments = options.parse_args()
    libraries = {"bare": None, "bestride": os.path.abspath(os.path.join(arguments.build, "lib", "libbestride.so"))}
    if arguments.other:
        libraries["other"] = os.path.abspath(arguments.other)
    raw = {kind: {} for kind in libraries}
    sizes = {}
    for _ in range(arguments.rounds):
        for kind, library in libraries.items():
            for row in run(os.path.join(arguments.build, "bin", "new_types"), library):
                sizes[row["case"]] = row["bytes"]
                raw[kind].setdefault(row["case"], []).append({key: row[key] for key in ("made", "packed", "kept")})
    ours = [kind for kind in libraries if kind != "bare"]
    print(f"{'make, commit, pack, free; ns':40} {'bytes':>6} {'bare':>8}" + "".join(f" {kind:>9} {'faster':>7} {'first use':>10}" for kind in ours))
    for case, size in sizes.items():
        bare = statistics.median(row["packed"] for row in raw["bare"][case])
        line = f"{case:40} {size:6} {bare:8.0f}"
        for kind in ours:
            rows = raw[kind][case]
            ratio = statistics.median(a["packed"] / b["packed"] for a, b in zip(raw["bare"][case], rows))
            first = statistics.median(row["packed"] - row["made"] - row["kept"] for row in rows)
            line += f" {statistics.median(row['packed'] for row in rows):9.0f} {ratio:7.2f} {first:10.0f}"
        print(line)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as out:
            json.dump(raw, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
