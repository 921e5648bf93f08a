#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One-way time of typed messages between two ranks, MPICH without and with the preload library, for the cases of bench/messages; with
--pack, MPI_Pack and MPI_Unpack of the same types on one rank, compared with a memcpy of the same number of bytes.

A case is measured in many short launches of the driver, with and without the preload library in turn. Each launch also measures the same
payload as a contiguous message, the limit of the transport. With --hosts the ranks are on two hosts of the test bed (tests/testbed, needs
root), whose links have the given rate each way.
"""
import contextlib
import json
import os
import sys

import summary
from launch import VARIANTS, launch, library_of, parser_of, rounds_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "testbed"))
from bed import Bed, reason_against  # noqa: E402

# (goal, condition for its cases, minimum ratio of each case)
GOALS = [
    ("no case slower than MPICH", lambda name, row: True, 0.97),
    ("vectors of 4 to 16 bytes, 64 KiB and more", lambda name, row: family(name) == "vector" and row["block"] <= 16 and
     row["bytes"] >= 64 * 1024, 5.0),
    ("arrays of structs", lambda name, row: family(name) == "struct", 4.0),
]
GEOMETRIC_MEAN_GOAL = 1.5
PACK_GOALS = GOALS[:1]
PACK_GEOMETRIC_MEAN_GOAL = 2.0


def cases_of(program, prefixes):
    library = None  # not needed for the list
    return launch("mpich", library, program, ["--list", *prefixes], ranks=1).split()


def family(name):
    """The part of a case's name before the first slash."""
    return name.split("/")[0]


def families(names):
    """The names by family. One launch measures the cases of one family."""
    grouped = {}
    for name in names:
        grouped.setdefault(family(name), []).append(name)
    return grouped.values()


def on_two_hosts(bed, variant, library, program, arguments, timeout):
    """The output of the program with a rank on each host of the bed, each on a processor of its own."""
    bound = ["sh", "-c", 'exec taskset -c "$PMI_RANK" "$0" "$@"', program, *arguments]
    return bed.call("run.sh", "-p", 1, *(() if variant == "mpich" else ("-l", library)), *bound, timeout=timeout)


def measure(program, library, names, rounds, seconds, pack, bed):
    """{case: [{variant: row} per round]}. `bed`: where the ranks are, or None: on this host."""
    rows = {}
    for number, order in enumerate(rounds_of(rounds), 1):
        for group in families(names):
            for variant in order:
                arguments = ["--exact", *(["--pack"] if pack else []), "--seconds", str(seconds), *group]
                text = (on_two_hosts(bed, variant, library, program, arguments, timeout=600) if bed else
                        launch(variant, library, program, arguments, ranks=1 if pack else 2, timeout=600))
                for line in text.splitlines():
                    row = json.loads(line)
                    if not row["right"]:
                        sys.exit(f"{row['case']}: the received data are wrong ({variant})")
                    rows.setdefault(row["case"], [{} for _ in range(rounds)])[number - 1][variant] = row
        print(f"  round {number} of {rounds}", file=sys.stderr)
    return rows


def figures_of(rows):
    """{case: figures} from {case: [{variant: row} per round]}: medians over rounds; ratios within rounds."""
    figures = {}
    for name, pairs in rows.items():
        times, fastest = summary.undisturbed_times(pairs, "typed_us", "typed_fastest_us")
        first = pairs[0]["mpich"]
        contiguous = min(pair[variant]["contiguous_us"] for pair in pairs for variant in VARIANTS)  # the best time of the transport
        figures[name] = {"bytes": first["bytes"], "block": first["block"], "contiguous_us": contiguous, **summary.compared(times), "fastest": fastest}
    return figures


def print_table(figures, pack):
    print("us; contiguous: a memcpy of the same number of bytes\n" if pack else
          "one way, us; contiguous: the same number of contiguous bytes, median of the best launch\n")
    print(f"{'case':28} {'bytes':>8} {'block':>7} {'MPICH us':>10} {'ours us':>10} {'ratio':>7} {'quartiles':>15} {'contiguous':>11} {'ours/contiguous':>16}")
    for name, row in figures.items():
        print(f"{name:28} {row['bytes']:8} {row['block']:7.1f} {row['mpich_us']:10.2f} {row['bestride_us']:10.2f} "
              f"{row['ratio']:6.2f}x{'~' if row['fastest'] else ' '}{row['ratio_q1']:6.2f}..{row['ratio_q3']:<7.2f} {row['contiguous_us']:10.2f} "
              f"{row['bestride_us'] / row['contiguous_us']:16.2f}")
    if any(row["fastest"] for row in figures.values()):
        print("~ other work used the cores during most rounds: fastest times instead of medians")


def print_verdict(figures, goals, mean_goal):
    """Prints which goals are met and every case that misses its goal. Returns whether all goals are met."""
    met = True
    print()
    for what, applies, least in goals:
        chosen = {name: row["ratio"] for name, row in figures.items() if applies(name, row)}
        short = {name: ratio for name, ratio in chosen.items() if ratio < least}
        met = met and not short
        if chosen:
            print(f"{'met     ' if not short else 'NOT MET '} {what}: at least {least}x each; lowest {min(chosen.values()):.2f}x of {len(chosen)} cases")
        for name, ratio in sorted(short.items(), key=lambda item: item[1]):
            print(f"           {ratio:5.2f}x  {name}")
    mean = summary.geometric_mean([row["ratio"] for row in figures.values()])
    met = met and mean >= mean_goal
    print(f"{'met     ' if mean >= mean_goal else 'NOT MET '} geometric mean over all {len(figures)} cases: at least "
          f"{mean_goal}x; {mean:.2f}x")
    return met


def main():
    parser = parser_of(__doc__, rounds=7)
    parser.add_argument("cases", nargs="*", help="prefixes of case names (all)")
    parser.add_argument("--seconds", type=float, default=0.05, help="seconds per case and launch (0.05)")
    parser.add_argument("--pack", action="store_true", help="measure MPI_Pack and MPI_Unpack instead of messages")
    parser.add_argument("--hosts", metavar="RATE", help="two hosts of the test bed with links of this rate, as in tc: 10gbit")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a goal is not met")
    options = parser.parse_args()
    if options.hosts and options.pack:
        parser.error("--pack is measured on one rank")
    if options.hosts and (reason := reason_against()):
        parser.error(f"--hosts: {reason}")
    library = library_of(options.build)
    program = os.path.join(os.path.abspath(options.build), "bin", "messages")

    with Bed(2, options.hosts) if options.hosts else contextlib.nullcontext() as bed:
        rows = measure(program, library, cases_of(program, options.cases), options.rounds, options.seconds, options.pack, bed)
    figures = figures_of(rows)
    print_table(figures, options.pack)
    met = print_verdict(figures, PACK_GOALS, PACK_GEOMETRIC_MEAN_GOAL) if options.pack else print_verdict(figures, GOALS, GEOMETRIC_MEAN_GOAL)
    summary.write_table(options, [{"case": name, **{key: value for key, value in row.items() if key != "block"}} for name, row in figures.items()])
    return 1 if options.strict and not met else 0


if __name__ == "__main__":
    sys.exit(main())
