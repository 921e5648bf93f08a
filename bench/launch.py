# SPDX-License-Identifier: Apache-2.0
"""Starts a two-rank MPI program with and without the preload library, in turns.

Figures from separate runs are not comparable on a shared machine, because clock, caches and load change. So each round runs
both variants immediately after each other, in an order that alternates between rounds. Ratios are computed within a round, and
the median over rounds is reported.
"""
import argparse
import os
import shutil
import subprocess
import sys

import summary

VARIANTS = ("mpich", "bestride")
UNRECORDED = "unrecorded"  # preloaded, with BESTRIDE_RECORD=off


def mpiexec():
    for name in ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"):
        if shutil.which(name):
            return name
    sys.exit("no mpiexec found: scripts/setup installs MPICH")


def library_of(build):
    library = os.path.join(os.path.abspath(build), "lib", "libbestride.so")
    if not os.path.exists(library):
        sys.exit(f"{library} does not exist: build it with scripts/build")
    return library


def launch(variant, library, program, arguments, ranks=2, timeout=120, bind=True):
    """Runs the program and returns its stdout. Ends the comparison unless the exit code is 0. `bind`: each rank to a core, if there are enough."""
    command = [mpiexec(), "-n", str(ranks)]
    if bind and (os.cpu_count() or 1) >= ranks:
        command += ["-bind-to", "core"]  # otherwise the scheduler may put two polling ranks on one core
    if variant != "mpich":
        command += ["-genv", "LD_PRELOAD", library]
    if variant == UNRECORDED:
        command += ["-genv", "BESTRIDE_RECORD", "off"]
    command += [program, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=environment)
    for sign in ("cannot be preloaded", "nothing is accelerated"):  # messages of the dynamic linker and of the library
        if variant != "mpich" and sign in done.stderr:
            sys.exit(f"the library is not in use, so MPICH would be compared with itself:\n{done.stderr[-2000:]}")
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} from: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def rounds_of(count, variants=VARIANTS):
    """The order of the variants in each round: A B, B A, A B, ..."""
    for number in range(count):
        yield variants if number % 2 == 0 else variants[::-1]


def parser_of(description, rounds=None, build=True):
    """A parser with the options that comparisons have in common. `rounds`: default of --rounds, None: without this option; `build`: with --build."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if build:
        parser.add_argument("--build", default="build/release", help="build folder (build/release)")
    if rounds:
        parser.add_argument("--rounds", type=int, default=rounds, help=f"runs of each variant ({rounds})")
    parser.add_argument("--table", metavar="FILE", help="write medians and quartiles to this file (bench/summary.py has the format)")
    return parser


class Comparison:
    """The command line of a comparison of one program, its rounds and its table."""

    def __init__(self, description, ranks=2, rounds=7, choices=None):
        self.parser = parser_of(description, rounds)
        self.parser.add_argument("--ranks", type=int, default=ranks, choices=choices, help=f"({ranks})")

    def parse(self):
        self.options = self.parser.parse_args()
        self.library = library_of(self.options.build)
        return self.options

    def rounds(self, program, rows_of, arguments=(), libraries=None, count=None, **how):
        """Runs the rounds one by one: {variant: rows_of(stdout)} for each. `libraries`: {variant: library}. `how`: further arguments of launch()."""
        libraries = libraries or dict.fromkeys(VARIANTS, self.library)
        path = os.path.join(self.options.build, "bin", program)
        for order in rounds_of(count or self.options.rounds, tuple(libraries)):
            yield {variant: rows_of(launch(variant, libraries[variant], path, arguments, self.options.ranks, **how)) for variant in order}

    def title(self, unit, rounds=None):
        print(f"{self.options.ranks} ranks, {len(os.sched_getaffinity(0))} processors, {rounds or self.options.rounds} rounds; {unit}\n")

    def write(self, rows, **facts):
        summary.write_table(self.options, rows, **facts)
