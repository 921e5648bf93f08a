#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of an intercepted call that Bestride does not change: bare, preloaded without recording (BESTRIDE_RECORD=off),
recorded, and preloaded but disabled, interleaved; nanoseconds and, if valgrind is installed, instructions per call (difference of two runs,
so that start-up cancels out)."""
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import launch
import summary

KINDS = ("bare", "preloaded", "recorded", "disabled")


def environment(kind, library):
    env = dict(os.environ)
    if kind != "bare":
        env["LD_PRELOAD"] = library
    if kind == "disabled":
        env["BESTRIDE_DISABLE"] = "1"
    env["BESTRIDE_RECORD"] = "on" if kind == "recorded" else "off"
    return env


def timed(program, env):
    """One run: a row for each case, with the nanoseconds per group of calls and the calls of a group."""
    text = subprocess.run([program, "time"], env=env, check=True, capture_output=True, text=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def collected(program, case, count, env):
    with tempfile.TemporaryDirectory() as folder:
        out = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", program, "count", str(case), str(count)],
            env=env, capture_output=True, text=True)
        found = re.search(r"Collected\s*:\s*(\d+)", out.stderr)
        return int(found.group(1)) if found else None


def instructions(program, case, env):
    """Instructions per group of calls, or None. The difference of two runs: both pay for the lazy resolution of the first call. MPI_Init
    varies by some hundred thousand instructions from run to run, which is little compared with many calls."""
    low, high = (collected(program, case, count, env) for count in (10000, 410000))
    return (high - low) / 400000 if low and high else None


def rows_of(raw, counts, calls):
    """One row for each case, per call, from {kind: {case: [nanoseconds of a group of calls per round]}}, {kind: {case: instructions of a group}} and
    {case: calls of a group}. What is added is a median of differences within a round, not the difference of medians."""
    rows = []
    for case, number in calls.items():
        row = {"case": case, "calls": number, "bare_ns": statistics.median(raw["bare"][case]) / number}
        for kind in KINDS[1:]:
            row |= summary.spread(f"{kind}_adds_ns", [(ns - bare) / number for ns, bare in zip(raw[kind][case], raw["bare"][case])])
        if all(case in counts[kind] for kind in KINDS):
            row["bare_instructions"] = counts["bare"][case] / number
            row |= {f"{kind}_adds_instructions": (counts[kind][case] - counts["bare"][case]) / number for kind in KINDS[1:]}
        rows.append({**row, "rounds": len(raw["bare"][case])})
    return rows


def print_rows(rows):
    print(f"{'case':34} {'bare ns':>9} {'+preload':>9} {'+recorded':>10} {'+disabled':>10}   {'bare ins':>9} {'+preload':>9} {'+recorded':>10} {'+disabled':>10}   (added per call)")
    for row in rows:
        def text(bare, added, row=row):
            return f"{row[bare]:9.1f} " + " ".join(f"{row[added.format(kind)]:{width}.1f}" for kind, width in zip(KINDS[1:], (9, 10, 10)))
        print(f"{row['case']:34} {text('bare_ns', '{}_adds_ns')}   " + (text("bare_instructions", "{}_adds_instructions") if "bare_instructions" in row else ""))
    worst = {kind: max(row[f"{kind}_adds_ns"] for row in rows) for kind in KINDS[1:]}
    print(f"largest cost added to a call: preloaded {worst['preloaded']:.1f} ns (goal 25), recorded {worst['recorded']:.1f} ns, disabled {worst['disabled']:.1f} ns (goal 10)")


def main():
    parser = launch.parser_of(__doc__, rounds=7)
    parser.add_argument("--no-instructions", action="store_true")
    options = parser.parse_args()
    program, library = os.path.join(options.build, "bin", "call_overhead"), launch.library_of(options.build)
    raw, counts, calls = {kind: {} for kind in KINDS}, {kind: {} for kind in KINDS}, {}
    for _ in range(options.rounds):
        for kind in KINDS:
            for row in timed(program, environment(kind, library)):
                calls[row["case"]] = row["calls"]
                raw[kind].setdefault(row["case"], []).append(row["ns"])
    if shutil.which("valgrind") and not options.no_instructions:
        for i, case in enumerate(calls):
            for kind in KINDS:
                counted = instructions(program, i, environment(kind, library))
                if counted is not None:
                    counts[kind][case] = counted
    rows = rows_of(raw, counts, calls)
    print_rows(rows)
    summary.write_table(options, rows)


if __name__ == "__main__":
    sys.exit(main())
