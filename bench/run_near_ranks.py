#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Contiguous messages between two bound ranks, without and with the preload library and a profile, in turns; and the forms of the messages written
by hand without it. Ratios within a round, medians over rounds: above 1 is faster than plain messages of MPICH."""
import argparse
import json
import os
import statistics
import sys

from launch import launch, library_of, rounds_of

FORMS = ("respelled", "respelled_sender", "respelled_receiver")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--profile", required=True, help="written by 'bestride calibrate' on this machine")
    parser.add_argument("--json", help="write the raw rows to this file")
    options = parser.parse_args()
    os.environ["BESTRIDE_CONTIGUOUS"] = "near"
    os.environ["BESTRIDE_PROFILE"] = os.path.abspath(options.profile)
    with open(options.profile, encoding="utf-8") as file:
        print(f"the profile respells contiguous messages from {json.load(file).get('respell_contiguous_from', 'no size')} on")
    program, library = os.path.join(os.path.abspath(options.build), "bin", "near_ranks"), library_of(options.build)
    rounds, by_hand, preloaded, times = [], {}, {}, {}
    for order in rounds_of(options.rounds):
        rows = {}
        for variant in order:
            text = launch(variant, library, program, [str(options.seconds)], timeout=300)
            rows[variant] = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        rounds.append(rows)
        for bare, ours in zip(rows["mpich"], rows["bestride"]):
            key = bare["kind"], bare["bytes"]
            by_hand.setdefault(key, []).append([bare["plain"] / bare[form] for form in FORMS])
            preloaded.setdefault(key, []).append(bare["plain"] / ours["plain"])
            times.setdefault(key, []).append(bare["plain"])
    print(f"{'':10}{'bytes':>10}{'MPICH us':>12}{'preloaded':>11}   by hand: {'both ends':>10}{'sender':>9}{'receiver':>10}")
    for key, ratios in by_hand.items():
        both, sender, receiver = (statistics.median(column) for column in zip(*ratios))
        print(f"{key[0]:10}{key[1]:>10}{statistics.median(times[key]):>12.2f}{statistics.median(preloaded[key]):>11.2f}{both:>22.2f}{sender:>9.2f}{receiver:>10.2f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"rounds": rounds}, file)


if __name__ == "__main__":
    sys.exit(main())
