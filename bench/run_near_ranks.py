#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contiguous messages between two bound ranks, without and with the preload library and a profile, in turns; and the forms of the messages written
by hand without it. Ratios within a round, medians over rounds: above 1 is faster than plain messages of MPICH."""
import json
import os
import statistics
import sys

import summary
from launch import launch, library_of, parser_of, rounds_of

FORMS = ("respelled", "respelled_sender", "respelled_receiver")
NAMES = ("both_ends", "sender", "receiver")  # of the columns


def rows_of(rounds):
    """One row for each kind and size from [{variant: [row of the program]} per round]. "ratio": preloaded."""
    times, preloaded, by_hand = {}, {}, {}
    for pair in rounds:
        for bare, ours in zip(pair["mpich"], pair["bestride"]):
            key = bare["kind"], bare["bytes"]
            times.setdefault(key, []).append(bare["plain"])
            preloaded.setdefault(key, []).append(bare["plain"] / ours["plain"])
            by_hand.setdefault(key, []).append([bare["plain"] / bare[form] for form in FORMS])
    return [{"kind": kind, "bytes": size, "mpich_us": statistics.median(times[kind, size]), **summary.spread("ratio", preloaded[kind, size]),
             **{name: statistics.median(column) for name, column in zip(NAMES, zip(*by_hand[kind, size]))}, "rounds": len(rounds)}
            for kind, size in times]


def main():
    parser = parser_of(__doc__, rounds=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--profile", required=True, help="written by 'bestride calibrate' on this machine")
    options = parser.parse_args()
    os.environ["BESTRIDE_FORCE"] = "contiguous=near"
    os.environ["BESTRIDE_PROFILE"] = os.path.abspath(options.profile)
    with open(options.profile, encoding="utf-8") as file:
        print(f"the profile respells contiguous messages from {json.load(file).get('respell_contiguous_from', 'no size')} on")
    program, library = os.path.join(os.path.abspath(options.build), "bin", "near_ranks"), library_of(options.build)
    rounds = []
    for order in rounds_of(options.rounds):
        rounds.append({})
        for variant in order:
            text = launch(variant, library, program, [str(options.seconds)], timeout=300)
            rounds[-1][variant] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    rows = rows_of(rounds)
    print(f"{'':10}{'bytes':>10}{'MPICH us':>12}{'preloaded':>11}   by hand: {'both ends':>10}{'sender':>9}{'receiver':>10}")
    for row in rows:
        print("{kind:10}{bytes:>10}{mpich_us:>12.2f}{ratio:>11.2f}{both_ends:>22.2f}{sender:>9.2f}{receiver:>10.2f}".format(**row))
    summary.write_table(options, rows)


if __name__ == "__main__":
    sys.exit(main())
