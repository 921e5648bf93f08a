#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks that are out of step, or share the processors with busy processes: MPICH's time over Bestride's.

    bench/run_waits.py [--build build/release] [--ranks 2] [--rounds 7] [--seconds 0.2] [--loads none,1,2] [--only NAME,...] [--bind] [--table FILE]

Each round runs the program bench/waits without and with the preload library, in turns. A ratio is taken within a round; the figure is the
median over rounds, between the quartiles. A load is a number of busy processes, each in a session of its own, as started by another user,
with a nice level after a colon ("1:10"), or "none". Ranks are bound to processors only with --bind.
"""
import contextlib
import subprocess
import sys

import launch
import summary

BUSY = "while True: pass"


@contextlib.contextmanager
def busy_processes(load):
    count, _, nice = load.partition(":")
    command = ["nice", "-n", nice or "0", sys.executable, "-c", BUSY]
    processes = [subprocess.Popen(command, start_new_session=True) for _ in range(0 if count == "none" else int(count))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def rows_of(text):
    rows = {}
    for line in text.splitlines():
        name, size, skew, seconds = line.split()
        rows[name, int(size), float(skew)] = float(seconds)
    return rows


def main():
    comparison = launch.Comparison(__doc__)
    comparison.parser.add_argument("--seconds", default="0.2", help="of each case")
    comparison.parser.add_argument("--loads", default="none,1,2")
    comparison.parser.add_argument("--only", default="")
    comparison.parser.add_argument("--bind", action="store_true")
    options = comparison.parse()
    arguments = ["--seconds", options.seconds] + (["--only", options.only] if options.only else [])
    table = []
    comparison.title("microseconds")
    print("load   collective            bytes   skew" + summary.COLUMNS)
    for load in options.loads.split(","):
        with busy_processes(load):
            rounds = list(comparison.rounds("waits", rows_of, arguments, timeout=600, bind=options.bind))
        for key in rounds[0]["mpich"]:
            times = {variant: [one[variant][key] for one in rounds] for variant in launch.VARIANTS}
            row = {"load": load, "collective": key[0], "bytes": key[1], "skew_us": key[2] * 1e6, **summary.compared(times, scale=1e6)}
            table.append(row)
            print(f"{load:7}{key[0]:18}{key[1]:9}{key[2] * 1e6:7.0f}{summary.columns(row)}", flush=True)
    comparison.write(table)


if __name__ == "__main__":
    main()
