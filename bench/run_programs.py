#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs of other projects (bench/programs/table.py), as they are and with the preload library, in turns.

    bench/run_programs.py [--build build/release] [--programs build/programs] [--ranks 2] [--rounds 7] [--reports 3] [--only TEXT] [--without TEXT,...] [--table FILE]

Each round runs the whole command without and with the library. "ratio" is the time without over the time with, taken within a round;
the figure is the median over rounds, between the quartiles. "MPI" is the time in MPI calls of a run that only records over that of a run
that does everything, "share" that of the first in its run: medians over --reports pairs, as `bestride run --report` prints them. "output": whether
every run with the library printed what the runs without it printed.

As root on Debian or Ubuntu, missing packages are installed; the first run builds the programs, which takes up to an hour.
"""
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

import launch
import summary

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs"))
import table  # noqa: E402  it adds tests/programs to the path
import compare  # noqa: E402
import job  # noqa: E402
from fetch import Missing, Place  # noqa: E402

RECORD_ONLY = {"BESTRIDE_STRATEGY": "forward", "BESTRIDE_COLLECTIVES": "library", "BESTRIDE_YIELD": "off"}


def bound(case):
    """Variables that bind each rank to a core, if there is one for each."""
    return {"HYDRA_BINDING": "core"} if (os.cpu_count() or 1) >= case.ranks else {}


def mpi_seconds(command, case, variables):
    """Seconds in MPI of all ranks, and their share of the ranks' time, in one reported run."""
    with tempfile.TemporaryDirectory() as folder:
        work = job.prepare(case, f"{folder}/job")
        environment = {**{name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}, **dict(case.environment), **bound(case), **variables}
        words = [command, "run", "--report", "--verdict-folder", folder, launch.mpiexec(), "-n", str(case.ranks), *case.command]
        subprocess.run(words, cwd=work, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=600, check=False)
        reports = glob.glob(f"{folder}/*.report.json")
        if not reports:
            return None, None
        with open(reports[0], encoding="utf-8") as file:
            report = json.load(file)
    seconds = sum(rank["mpi_seconds"] for rank in report["ranks"])
    return seconds, seconds / max(1e-9, sum(rank["seconds"] for rank in report["ranks"]))


def measure(case, options, library, command):
    folder = f"{options.programs}/bench"
    runs = {variant: [] for variant in launch.VARIANTS}
    for number, order in enumerate(launch.rounds_of(options.rounds)):
        for variant in order:
            environment = {"LD_PRELOAD": library} if variant == "bestride" else {}
            here = job.Case(**{**vars(case), "environment": (*case.environment, *bound(case).items())})
            outcome = job.launch(here, environment, f"{folder}/{variant}.{number}", 4.0)
            if outcome.status != 0:
                return {"error": f"{variant}: exit status {outcome.status} ({folder}/{variant}.{number})"}
            runs[variant].append(outcome)
    differences = [text for run in runs["bestride"] for text in compare.differences(runs["mpich"], run)]
    shutil.rmtree(folder, ignore_errors=True)
    times = {variant: [run.seconds for run in runs[variant]] for variant in launch.VARIANTS}
    pairs = [(mpi_seconds(command, case, RECORD_ONLY), mpi_seconds(command, case, {})) for _ in range(options.reports)]
    complete = [(recorded, done) for recorded, done in pairs if recorded[0] and done[0]]
    return {**summary.compared(times, "s"),
            "mpi_ratio": statistics.median(recorded[0] / done[0] for recorded, done in complete) if complete else None,
            "share": statistics.median(recorded[1] for recorded, _ in complete) if complete else None,
            "output": "; ".join(differences[:3]) or "same"}


def main():
    parser = launch.parser_of(__doc__, rounds=7)
    parser.add_argument("--programs", default="build/programs", help="folder in which the programs are built")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--reports", type=int, default=3, help="pairs of runs for the time in MPI")
    parser.add_argument("--only", default="", help="only programs whose name contains this")
    parser.add_argument("--without", default="", help="no programs whose name contains one of these")
    options = parser.parse_args()
    options.programs = os.path.abspath(options.programs)
    library = launch.library_of(options.build)
    command = os.path.join(os.path.abspath(options.build), "bin", "bestride")
    place = Place(options.programs, may_install=True)
    print(f"{options.ranks} ranks, {os.cpu_count()} processors; seconds\n")
    print(f"{'program':24}{'kind':36}{'MPICH':>9}{'Bestride':>9}  ratio  {'quartiles':14}{'MPI':>6}{'share':>7}  output")
    rows = []
    for name, program in table.PROGRAMS.items():
        if options.only not in name or any(text in name for text in options.without.split(",") if text):
            continue
        try:
            program.build(place)
        except Missing as missing:
            print(f"{name:24}left out: {missing}", flush=True)
            continue
        row = {"program": name, "kind": program.kind, **measure(program.case(place, options.ranks), options, library, command)}
        rows.append(row)
        summary.write_table(options, rows, processors=os.cpu_count())
        if "error" in row:
            print(f"{name:24}{row['error']}", flush=True)
            continue
        ratio = f"{row['mpi_ratio']:.2f}" if row["mpi_ratio"] else "-"
        share = f"{row['share'] * 100:.0f} %" if row["share"] is not None else "-"
        print(f"{name:24}{program.kind:36}{row['mpich_s']:9.3f}{row['bestride_s']:9.3f}{row['ratio']:7.2f}  {row['ratio_q1']:.2f} to {row['ratio_q3']:.2f}  "
              f"{ratio:>6}{share:>7}  {row['output']}", flush=True)


if __name__ == "__main__":
    main()
