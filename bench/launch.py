# SPDX-License-Identifier: Apache-2.0
"""Starts a two-rank MPI program with and without the preload library, in turns.

Figures from separate runs are not comparable on a shared machine, because clock, caches and load change. So each round runs
both variants immediately after each other, in an order that alternates between rounds. Ratios are computed within a round, and
the median over rounds is reported.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys

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


# A launch is disturbed by other work on the machine if its median sample takes more than this factor times the fastest of all launches.
# Both ranks poll, and a rank that loses its core waits for a time slice, which takes many times as long as a message.
DISTURBED = 3


def undisturbed_times(pairs, middle, fastest):
    """From [{variant: row} per round] to ({variant: [time per round]}, whether these are fastest times instead of medians).

    Uses only rounds in which neither launch was disturbed. If fewer than two, or fewer than a third, remain, the machine is too busy
    for medians, and the fastest time of all rounds is used for each variant. `middle` and `fastest` are the names of a row's fields.
    """
    best = {variant: min(pair[variant][fastest] for pair in pairs) for variant in VARIANTS}
    clean = [pair for pair in pairs if all(pair[variant][middle] <= DISTURBED * best[variant] for variant in VARIANTS)]
    if len(clean) >= max(2, len(pairs) / 3):
        return {variant: [pair[variant][middle] for pair in clean] for variant in VARIANTS}, False
    return {variant: [time] for variant, time in best.items()}, True


def ratios(times):
    """MPICH's time over Bestride's, round by round."""
    return [above / below for above, below in zip(times["mpich"], times["bestride"])]


def quartiles_of(values):
    """The lower quartile, the median and the upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else list(values) * 3


def compared(times, variant="bestride"):
    """The columns of one case from {variant: [time per round]}: median times, and the ratios of MPICH's time to the variant's within a round."""
    pairs = [bare / ours for bare, ours in zip(times["mpich"], times[variant])]
    low, middle, high = quartiles_of(pairs)
    return {"mpich": statistics.median(times["mpich"]), variant: statistics.median(times[variant]), "ratio": middle, "quartiles": [low, high],
            "rounds": len(pairs)}


def columns(row, scale=1e6, digits=1):
    """The text of these columns, below COLUMNS. `scale`: of the times."""
    low, high = row["quartiles"]
    return f"{row['mpich'] * scale:11.{digits}f}{row['bestride'] * scale:11.{digits}f}{row['ratio']:8.2f}  {low:.2f} to {high:.2f}"


COLUMNS = "      MPICH   Bestride   ratio  quartiles"


class Comparison:
    """The command line of a comparison, its rounds and its JSON file."""

    def __init__(self, description, ranks=2, rounds=7, choices=None):
        self.parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self.parser.add_argument("--build", default="build/release")
        self.parser.add_argument("--ranks", type=int, default=ranks, choices=choices)
        self.parser.add_argument("--rounds", type=int, default=rounds)
        self.parser.add_argument("--json", default="")

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

    def write(self, cases, **more):
        if self.options.json:
            with open(self.options.json, "w", encoding="utf-8") as file:
                json.dump({"options": vars(self.options), **more, "cases": cases}, file, indent=1)
