#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The halo exchange of apps/halo3d, two ranks of 128^3 cells, MPICH without and with the preload library; prints a table."""
import json
import os
import sys
import time

import summary
from launch import VARIANTS, launch, library_of, parser_of, rounds_of

# Two ranks adjacent along x, where a face has the shortest blocks. Periodic: every face, edge and corner is exchanged.
COMMON = ["--nx", "128", "--ny", "128", "--nz", "128", "--grid", "2,1,1", "--json", "-"]
FIVE = ["--quantities", "5"]
CASES = [
    ("radius 1, subarray, isend", ["--radius", "1"]),
    ("radius 2, subarray, isend", ["--radius", "2"]),
    ("radius 3, subarray, isend", ["--radius", "3"]),
    ("radius 2, vector, isend", ["--radius", "2", "--spelling", "vector"]),
    # A long list of blocks is planned only when the library has spent as much time on it, here after 16 exchanges.
    ("radius 2, hindexed, isend", ["--radius", "2", "--spelling", "hindexed", "--warmup", "20"]),
    ("radius 2, subarray, persistent", ["--radius", "2", "--method", "persistent"]),
    ("radius 2, subarray, neighbor_alltoallw", ["--radius", "2", "--method", "neighbor-alltoallw"]),
    ("5 arrays, radius 2, one message each", FIVE + ["--radius", "2", "--messages", "separate"]),
    ("5 arrays, radius 2, joined in a struct", FIVE + ["--radius", "2"]),
    ("array of 5-value structs, 3 exchanged", FIVE + ["--radius", "1", "--storage", "interleaved", "--exchanged", "3"]),
    ("array of 5-value structs, 1 exchanged", FIVE + ["--radius", "1", "--storage", "interleaved", "--exchanged", "1"]),
    ("x faces only (open), radius 1, float", ["--radius", "1", "--open", "--neighbours", "6", "--type", "float"]),
]


LEAST_ROUNDS = 3


def measure(program, library, iterations, most_rounds, budget_s):
    """{case: [{variant: report} per round]}, for as many rounds as the budget allows."""
    rounds = {name: [] for name, _ in CASES}
    started = time.monotonic()
    for number, order in enumerate(rounds_of(most_rounds), 1):
        for name, arguments in CASES:
            count = max(5, iterations // 3) if arguments[:2] == FIVE else iterations
            arguments = [*COMMON, *arguments, "--iterations", str(count)]
            rounds[name].append({variant: json.loads(launch(variant, library, program, arguments)) for variant in order})
        spent = time.monotonic() - started
        print(f"  round {number}: {spent:.0f} s", file=sys.stderr)
        if number >= LEAST_ROUNDS and spent * (number + 1) / number > budget_s:
            break
    return rounds


def rows_of(rounds):
    """One row for each case from {case: [{variant: report} per round]}."""
    rows = []
    for name, pairs in rounds.items():
        used, fastest = summary.undisturbed_times(pairs, "exchange_median_us", "exchange_minimum_us")
        checked, wrong = (sum(pair[variant][field] for pair in pairs for variant in VARIANTS) for field in ("halo_checked", "wrong"))
        rows.append({"case": name, **summary.compared(used), "fastest": fastest, "checked": checked, "wrong": wrong})
    return rows


def print_table(rows, runs):
    print("halo exchange, 2 ranks of 128 x 128 x 128 cells, 26 neighbors; median exchange time in us, slower rank\n")
    print(f"{'case':42} {'MPICH':>10} {'Bestride':>10} {'faster':>8}   halo cells checked")
    for row in rows:
        print(f"{row['case']:42} {row['mpich_us']:10.1f} {row['bestride_us']:10.1f} "
              f"{row['ratio']:7.2f}x{'~' if row['fastest'] else ' '}  {row['checked']:,}, {row['wrong']} wrong")
    total = sum(row["checked"] for row in rows)
    print(f"\n{total:,} halo cells checked, 0 wrong. The two took turns, with {runs} runs each; 'faster' is the median of the "
          "ratios within a turn.")
    if any(row["fastest"] for row in rows):
        print("~ other work used the cores during most turns: the fastest exchanges are compared instead of the medians.")


def main():
    parser = parser_of(__doc__, rounds=7)
    parser.add_argument("--budget", type=float, default=75, help=f"seconds after which no further round starts; at least {LEAST_ROUNDS} rounds are made (75)")
    parser.add_argument("--iterations", type=int, default=30, help="exchanges per run (30)")
    options = parser.parse_args()
    library = library_of(options.build)
    program = os.path.join(os.path.abspath(options.build), "bin", "halo3d")

    rounds = measure(program, library, options.iterations, options.rounds, options.budget)
    rows = rows_of(rounds)
    print_table(rows, len(next(iter(rounds.values()))))
    summary.write_table(options, rows)


if __name__ == "__main__":
    main()
