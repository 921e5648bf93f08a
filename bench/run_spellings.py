#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gain of each call with (buffer, count, type) from an equivalent type that the MPI library handles faster: written by hand without the
preload library, and with the preload library. Ratios of times per call, within a launch for the former and within a round for the latter;
medians over rounds."""
import argparse
import json
import os
import statistics
import sys

from launch import launch, library_of, rounds_of


def key(row):
    return row["call"], row["shape"], row["bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("calls", nargs="*", help="prefixes of names (all)")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.02)
    parser.add_argument("--json", help="write the raw rows to this file")
    options = parser.parse_args()
    program = os.path.join(os.path.abspath(options.build), "bin", "spellings")
    library = library_of(options.build)
    rounds = []
    for order in rounds_of(options.rounds):
        rounds.append({})
        for variant in order:
            text = launch(variant, library, program, ["--seconds", str(options.seconds), *options.calls], timeout=300)
            rounds[-1][variant] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    by_hand, preloaded = {}, {}
    for pair in rounds:
        for row in pair["mpich"]:
            by_hand.setdefault(key(row), []).append([row["forward_us"] / row[side] for side in ("send_us", "receive_us", "both_us")])
        ours = {key(row): row["forward_us"] for row in pair["bestride"]}
        for row in pair["mpich"]:
            preloaded.setdefault(key(row), []).append(row["forward_us"] / ours[key(row)])
    shapes = list(dict.fromkeys(shape for _, shape, _ in by_hand))
    print("by hand: sending side, receiving side, both; then with the preload library")
    for size in sorted({size for _, _, size in by_hand}):
        print(f"\n{size} bytes{'':24}" + "".join(f"{shape:>30}" for shape in shapes))
        for call in dict.fromkeys(call for call, _, _ in by_hand):
            cells = ""
            for shape in shapes:
                ratios = by_hand.get((call, shape, size))
                text = "" if ratios is None else " ".join(f"{statistics.median(column):5.2f}" for column in zip(*ratios))
                text += "" if ratios is None else f" {statistics.median(preloaded[call, shape, size]):7.2f}"
                cells += f"{text:>30}"
            print(f"{call:34}{cells}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rounds": rounds}, file)


if __name__ == "__main__":
    sys.exit(main())
