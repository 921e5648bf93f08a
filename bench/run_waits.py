#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of ranks that are out of step, or share the processors with busy processes: MPICH's time over Bestride's.

    bench/run_waits.py [--build build/release] [--ranks 2] [--rounds 7] [--seconds 0.2] [--loads none,1,2] [--only NAME,...] [--bind] [--json FILE]

Each round runs the program bench/waits without and with the preload library, in turns. A ratio is taken within a round; the figure is the
median over rounds, between the quartiles. A load is a number of busy processes, each in a session of its own, as started by another user,
with a nice level after a colon ("1:10"), or "none". Ranks are bound to processors only with --bind.
"""
import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys

import launch

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", default="0.2", help="of each case")
    parser.add_argument("--loads", default="none,1,2")
    parser.add_argument("--only", default="")
    parser.add_argument("--bind", action="store_true")
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    library = launch.library_of(options.build)
    program = os.path.join(options.build, "bin", "waits")
    arguments = ["--seconds", options.seconds] + (["--only", options.only] if options.only else [])
    table = []
    print(f"{options.ranks} ranks, {os.cpu_count()} processors; microseconds\n")
    print("load   collective            bytes   skew      MPICH   Bestride   ratio  quartiles")
    for load in options.loads.split(","):
        with busy_processes(load):
            rounds = [{variant: rows_of(launch.launch(variant, library, program, arguments, options.ranks, 600, options.bind)) for variant in order}
                      for order in launch.rounds_of(options.rounds)]
        for key in rounds[0]["mpich"]:
            times = {variant: [one[variant][key] for one in rounds] for variant in launch.VARIANTS}
            ratios = launch.ratios(times)
            quarters = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
            row = {"load": load, "collective": key[0], "bytes": key[1], "skew": key[2], "mpich": statistics.median(times["mpich"]),
                   "bestride": statistics.median(times["bestride"]), "ratio": statistics.median(ratios), "quartiles": [quarters[0], quarters[2]]}
            table.append(row)
            print(f"{load:7}{key[0]:18}{key[1]:9}{key[2] * 1e6:7.0f}{row['mpich'] * 1e6:11.1f}{row['bestride'] * 1e6:11.1f}{row['ratio']:8.2f}"
                  f"  {quarters[0]:.2f} to {quarters[2]:.2f}", flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": vars(options), "cases": table}, file, indent=1)


if __name__ == "__main__":
    main()
