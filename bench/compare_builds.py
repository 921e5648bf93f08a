#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the preload libraries of two builds, old and new, in turns: messages, halo exchange, and calls with nothing to do.

compare_builds.py OLD_BUILD NEW_BUILD [--what messages,halo,calls] [--rounds 8] [--environment NAME=value] [--json FILE]

The programs are those of NEW_BUILD. Each round runs both libraries one shortly after the other, the order changing from round to
round. A ratio is old over new within a round, so more than 1 means that the new library is faster. Without a profile both
libraries choose by the built-in one, so both do the same.
"""
import argparse
import json
import os
import shutil
import statistics
import sys

from launch import launch, library_of
from run_call_overhead import environment, instructions, timed
from run_halo import CASES, COMMON
from run_messages import cases_of, families, geometric_mean

BUILDS = ("old", "new")


def in_turns(rounds, run):
    """[{build: run(build)} per round]"""
    for number in range(rounds):
        order = BUILDS if number % 2 == 0 else BUILDS[::-1]
        yield {build: run(build) for build in order}
        print(f"  round {number + 1} of {rounds}", file=sys.stderr)


def messages(libraries, programs, rounds, prefixes):
    program = os.path.join(programs, "messages")
    names = cases_of(program, prefixes)

    def run(build):
        times = {}
        for group in families(names):
            for line in launch("bestride", libraries[build], program, ["--exact", "--seconds", "0.02", *group], timeout=600).splitlines():
                row = json.loads(line)
                times[row["case"]] = row["typed_us"]
        return times
    return list(in_turns(rounds, run))


def halo(libraries, programs, rounds, _):
    program = os.path.join(programs, "halo3d")

    def run(build):
        return {name: json.loads(launch("bestride", libraries[build], program, [*COMMON, *arguments, "--iterations", "20"]))["exchange_median_us"]
                for name, arguments in CASES}
    return list(in_turns(rounds, run))


def calls(libraries, programs, rounds, _):
    program = os.path.join(programs, "call_overhead")
    return list(in_turns(rounds, lambda build: {row["case"]: row["ns"] / row["calls"] for row in timed(program, environment("preloaded", libraries[build]))}))


def call_instructions(libraries, programs, names):
    """{case: {build: instructions per group of calls}}. They repeat, so one run of each is enough."""
    program = os.path.join(programs, "call_overhead")
    return {name: {build: instructions(program, i, environment("preloaded", libraries[build])) for build in BUILDS} for i, name in enumerate(names)}


def print_ratios(what, pairs):
    ratios = {name: [pair["old"][name] / pair["new"][name] for pair in pairs] for name in pairs[0]["old"]}
    best = {name: min(pair["old"][name] for pair in pairs) / min(pair["new"][name] for pair in pairs) for name in ratios}
    middle = {name: statistics.median(values) for name, values in ratios.items()}
    print(f"{what}: {len(ratios)} cases, {len(pairs)} rounds; old over new: geometric mean of the medians {geometric_mean(list(middle.values())):.3f}, "
          f"of the fastest runs {geometric_mean(list(best.values())):.3f}")
    for name in sorted(ratios, key=best.get)[:5]:
        print(f"  lowest: {name:42} fastest {best[name]:.3f}, median {middle[name]:.3f} ({min(ratios[name]):.2f} to {max(ratios[name]):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--what", default="calls,messages,halo")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--cases", nargs="*", default=[], help="beginnings of names of messages (all)")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=value", help="for both libraries")
    parser.add_argument("--json", help="keep the times in this file")
    options = parser.parse_args()
    for setting in options.environment:
        os.environ.update([setting.split("=", 1)])
    libraries = {"old": library_of(options.old), "new": library_of(options.new)}
    programs = os.path.join(os.path.abspath(options.new), "bin")
    kept = {}
    for what in options.what.split(","):
        kept[what] = {"messages": messages, "halo": halo, "calls": calls}[what](libraries, programs, options.rounds, options.cases)
        print_ratios(what, kept[what])
        if what == "calls" and shutil.which("valgrind"):
            kept["instructions"] = call_instructions(libraries, programs, list(kept[what][0]["old"]))
            for name, counts in kept["instructions"].items():
                print(f"  instructions: {name:34} old {counts['old']:8.1f} new {counts['new']:8.1f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"environment": options.environment, "runs": kept}, file, indent=0)
    return 0


if __name__ == "__main__":
    sys.exit(main())
