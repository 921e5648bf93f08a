# SPDX-License-Identifier: Apache-2.0
"""Starts a two-rank MPI program with and without the preload, the two taking turns.

Figures from separate sittings are not comparable on a machine that others use too: its clock, its caches and its load drift.
So each round runs one of each, close together, the first of the two changing from round to round; a ratio is taken within
its round, and what is reported is the median over rounds.
"""
import os
import shutil
import subprocess
import sys

VARIANTS = ("mpich", "bestride")


def mpiexec():
    for name in ("mpiexec.mpich", "mpiexec.hydra", "mpiexec"):
        if shutil.which(name):
            return name
    sys.exit("no mpiexec found: scripts/setup installs MPICH")


def library_of(build):
    library = os.path.join(os.path.abspath(build), "lib", "libbestride.so")
    if not os.path.exists(library):
        sys.exit(f"{library} is not there: scripts/build makes it")
    return library


def launch(variant, library, program, arguments, ranks=2, timeout=120):
    """Runs it and returns what it wrote to stdout. Anything but a clean exit ends the comparison."""
    command = [mpiexec(), "-n", str(ranks)]
    if (os.cpu_count() or 1) >= ranks:
        command += ["-bind-to", "core"]  # else the scheduler may put two ranks that poll on one core
    if variant == "bestride":
        command += ["-genv", "LD_PRELOAD", library]
    command += [program, *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout, env=environment)
    for sign in ("cannot be preloaded", "nothing is accelerated"):  # the dynamic linker's and the library's own
        if variant == "bestride" and sign in done.stderr:
            sys.exit(f"the library is not in use, so MPICH would be compared with itself:\n{done.stderr[-2000:]}")
    if done.returncode != 0:
        sys.exit(f"exit code {done.returncode} from: {' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def rounds_of(count):
    """Per round the order of the two variants: A B, B A, A B, ..."""
    for number in range(count):
        yield VARIANTS if number % 2 == 0 else VARIANTS[::-1]


# A launch whose middle sample took so many times the fastest of all launches was disturbed by other work on the machine: both
# ranks poll, and one that loses its core costs a slice of the scheduler, many times a message.
DISTURBED = 3


def undisturbed_times(pairs, middle, fastest):
    """From [{variant: row} per round] to ({variant: [time per round]}, whether they are fastest times instead of middle ones).

    Only rounds in which neither launch was disturbed count. Where fewer than two, or fewer than a third, are left, the machine
    is too busy for medians and one time a variant is taken: the fastest of all rounds. `middle` and `fastest` name a row's fields.
    """
    best = {variant: min(pair[variant][fastest] for pair in pairs) for variant in VARIANTS}
    clean = [pair for pair in pairs if all(pair[variant][middle] <= DISTURBED * best[variant] for variant in VARIANTS)]
    if len(clean) >= max(2, len(pairs) / 3):
        return {variant: [pair[variant][middle] for pair in clean] for variant in VARIANTS}, False
    return {variant: [time] for variant, time in best.items()}, True


def ratios(times):
    """MPICH's time over Bestride's, round by round."""
    return [above / below for above, below in zip(times["mpich"], times["bestride"])]
