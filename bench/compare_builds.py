#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the preload libraries of two builds, old and new, in turns: messages, halo exchange, and calls with nothing to do.

compare_builds.py OLD_BUILD NEW_BUILD [--what messages,halo,calls] [--rounds 8] [--environment NAME=value] [--table FILE]

The programs are those of NEW_BUILD. Each round runs both libraries one shortly after the other, the order changing from round to
round. A ratio is old over new within a round, so more than 1 means that the new library is faster. Without a profile both
libraries choose by the built-in one, so both do the same.
"""
import json
import os
import shutil
import statistics
import sys

import summary
from launch import launch, library_of, parser_of
from run_call_overhead import environment, instructions, timed
from run_halo import CASES, COMMON
from run_messages import cases_of, families

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


def rows_of(what, pairs):
    """One row for each case from [{build: {case: time}} per round]."""
    rows = []
    for name in pairs[0]["old"]:
        times = {build: [pair[build][name] for pair in pairs] for build in BUILDS}
        rows.append({"case": name, "what": what, "old": statistics.median(times["old"]), "new": statistics.median(times["new"]),
                     **summary.spread("ratio", summary.ratios(times, "old", "new")), "fastest_ratio": min(times["old"]) / min(times["new"]), "rounds": len(pairs)})
    return rows


def print_rows(what, rows):
    print(f"{what}: {len(rows)} cases, {rows[0]['rounds']} rounds; old over new: geometric mean of the medians "
          f"{summary.geometric_mean([row['ratio'] for row in rows]):.3f}, of the fastest runs {summary.geometric_mean([row['fastest_ratio'] for row in rows]):.3f}")
    for row in sorted(rows, key=lambda row: row["fastest_ratio"])[:5]:
        print("  lowest: {case:42} fastest {fastest_ratio:.3f}, median {ratio:.3f} ({ratio_q1:.2f} to {ratio_q3:.2f})".format(**row))


def main():
    parser = parser_of(__doc__, rounds=8, build=False)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--what", default="calls,messages,halo")
    parser.add_argument("--cases", nargs="*", default=[], help="beginnings of names of messages (all)")
    parser.add_argument("--environment", action="append", default=[], metavar="NAME=value", help="for both libraries")
    options = parser.parse_args()
    for setting in options.environment:
        os.environ.update([setting.split("=", 1)])
    libraries = {"old": library_of(options.old), "new": library_of(options.new)}
    programs = os.path.join(os.path.abspath(options.new), "bin")
    rows = []
    for what in options.what.split(","):
        found = rows_of(what, {"messages": messages, "halo": halo, "calls": calls}[what](libraries, programs, options.rounds, options.cases))
        print_rows(what, found)
        rows += found
        if what == "calls" and shutil.which("valgrind"):
            for name, counts in call_instructions(libraries, programs, [row["case"] for row in found]).items():
                print(f"  instructions: {name:34} old {counts['old']:8.1f} new {counts['new']:8.1f}")
                rows.append({"case": name, "what": "instructions", **counts, "ratio": counts["old"] / counts["new"]})
    summary.write_table(options, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
