#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs random MPI programs without and with the preload library. Their results must be the same.

run.py --binary FILE --library FILE [--programs 1000] [--seed 1] [--modes a,b | --all-modes] [--shrink] [--bare-twice]

Programs are launched in chunks. Each chunk runs bare, then in some random modes (or all), and the traces are compared rank by rank.
The exit code is 1 if a trace differs, or a program crashes or hangs. The first failure is shrunk and printed as C.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

from compare import compare, growth, wrong
from emit import source
from launch import BARE, MODES, Launcher
from shrink import Shrinker, check_source

CHUNK = 100
RANKS = (2, 2, 2, 3, 3, 4, 4, 4, 4, 1, 5, 6)


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--fake-cuda", default="")
    parser.add_argument("--alltoall-profile", default="", help="profile in which of the collectives on one node only alltoalls gain through shared memory")
    parser.add_argument("--near-profile", default="", help="profile in which contiguous messages gain between ranks that share a cache")
    parser.add_argument("--mpiexec", default=shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra") or "mpiexec")
    parser.add_argument("--mpicc", default=shutil.which("mpicc.mpich") or "mpicc")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="index of the first program, to run a part again")
    parser.add_argument("--ranks", type=int, default=0, help="number of ranks of every program; default: random for each chunk")
    parser.add_argument("--threads", choices=("drawn", "0", "1"), default="drawn")
    parser.add_argument("--modes", default="", help="names, separated by commas: " + " ".join(MODES))
    parser.add_argument("--all-modes", action="store_true")
    parser.add_argument("--draw", type=int, default=2, help="number of random modes for each chunk")
    parser.add_argument("--bare-twice", action="store_true", help="compare bare with bare, to check the MPI library alone")
    parser.add_argument("--stall", type=float, default=12, help="seconds without progress that count as a hang")
    parser.add_argument("--again", type=int, default=4, help="a failure counts if one of this many more launches fails; 0: every failure counts")
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--failures", type=int, default=1, help="stop after this many failures")
    parser.add_argument("--seconds", type=float, default=0, help="stop after this time, without an error")
    parser.add_argument("--keep", default="", help="folder that failing programs are written to")
    return parser.parse_args()


def chunk_form(args, number):
    """Ranks and threads of a chunk, and the modes in which it runs."""
    draw = random.Random(f"{args.seed} {number}")
    ranks = draw.choice(RANKS)
    threads = draw.random() < 0.25
    if args.modes:
        modes = [MODES[name] for name in args.modes.split(",")]
    elif args.bare_twice:
        modes = [BARE]
    else:
        usable = [mode for mode in MODES.values() if not mode.needs or vars(args)[mode.needs]]
        modes = usable if args.all_modes else draw.sample(usable, args.draw)
    return args.ranks or ranks, threads if args.threads == "drawn" else args.threads == "1", modes


def flags(threads, modes):
    """With MPI_THREAD_MULTIPLE, which modes with several nodes request, an exception from an error handler leaves a lock of MPICH 4.0.2 taken."""
    return [*(["--threads"] if threads else []), *(["--no-throwing"] if any(mode.nodes for mode in modes) else [])]


class Run:
    def __init__(self, args, folder):
        self.args, self.failures, self.done, self.seen_once = args, [], 0, 0
        files = {name: os.path.abspath(vars(args)[name]) for name in Launcher.VARIABLES if vars(args)[name]}
        self.launcher = Launcher(args.binary, os.path.abspath(args.library), files, args.mpiexec, folder, args.stall)
        self.bare_growth, self.mode_growth = (0, 0), (0, 0)

    def chunk(self, number):
        ranks, threads, modes = chunk_form(self.args, number)
        first = self.args.first + number * CHUNK
        count = min(CHUNK, self.args.first + self.args.programs - first)
        self.part(ranks, threads, modes, first, count)
        self.done += count

    def part(self, ranks, threads, modes, first, count):
        arguments = ["--seed", str(self.args.seed), "--first", str(first), "--count", str(count), *flags(threads, modes)]
        bare = self.launcher.run(BARE, ranks, arguments)
        form = f"--seed {self.args.seed} --first {first} --programs {count} --ranks {ranks} --threads {int(threads)}"
        difference = next(wrong(bare), None) or (None if bare.ended else compare(bare, bare))
        if difference:
            self.bare_is_wrong(difference, ranks, threads, form, bare)
            self.before(ranks, threads, modes, first, count, difference)
            self.after(ranks, threads, modes, first, count, difference)
            return
        for mode in modes:
            other = self.launcher.run(mode, ranks, arguments)
            difference = compare(bare, other) or next(wrong(other), None)
            if difference:
                if self.args.again == 0 or self.recurs(difference, mode, ranks, threads, arguments, form, other):
                    self.report(difference, mode, ranks, threads, form, other)
                if not other.ended:
                    self.after(ranks, threads, [mode], first, count, difference)
            elif count == CHUNK:
                (kib, more), (bare_kib, bare_more) = growth(other), growth(bare)
                if kib > bare_kib + 65536 or more > bare_more + 16:
                    print(f"{mode.name}: {form}: grew by {kib} KiB and {more} descriptors; bare by {bare_kib} and {bare_more}")
                    self.failures.append(None)
            self.launcher.forget(other)
        self.launcher.forget(bare)

    def recurs(self, difference, mode, ranks, threads, arguments, form, outcome):
        """Whether the launch fails again in the mode, and never bare: MPICH 4.0.2 alone occasionally hangs, corrupts its heap and delivers
        wrong bytes."""
        again = [self.launcher.run(BARE, ranks, arguments) for _ in range(max(2, self.args.again))]
        bare = next((found for one in again if (found := next(wrong(one), None) or compare(again[0], one))), None)
        if bare:
            self.bare_is_wrong(bare, ranks, threads, form, again[-1])
            return False
        for _ in range(self.args.again):
            other = self.launcher.run(mode, ranks, arguments)
            if compare(again[0], other) or next(wrong(other), None):
                return True
        self.seen_once += 1
        print(f"seen once in {self.args.again + 1} launches: {mode.name}, {ranks} ranks{', threads' if threads else ''}: {difference}\n  in its launch: {form}\n"
              f"{outcome.stacks or outcome.text[-2000:]}", flush=True)
        return False

    def bare_is_wrong(self, difference, ranks, threads, form, outcome):
        """Reports that the MPI library alone fails, so that there is nothing to compare. This is a failure only with --bare-twice."""
        print(f"{'FAILED' if self.args.bare_twice else 'skipped:'} bare, {ranks} ranks{', threads' if threads else ''}: {difference}\n  in its launch: {form}", flush=True)
        if outcome.stacks:
            print(outcome.stacks)
        if self.args.bare_twice:
            self.failures.append((difference, BARE, ranks, threads))

    def before(self, ranks, threads, modes, first, count, difference):
        """Runs the programs before one that is skipped."""
        if len(self.failures) < self.args.failures and first < difference.index < first + count:
            self.part(ranks, threads, modes, first, difference.index - first)

    def after(self, ranks, threads, modes, first, count, difference):
        """Runs the programs after one that crashed or hung."""
        if len(self.failures) < self.args.failures and first <= difference.index < first + count - 1:
            self.part(ranks, threads, modes, difference.index + 1, first + count - 1 - difference.index)

    def report(self, difference, mode, ranks, threads, form, outcome):
        print(f"FAILED {mode.name}, {ranks} ranks{', threads' if threads else ''}: {difference}")
        if outcome.stacks:
            print(outcome.stacks)
        elif not outcome.ended:
            print("  output: " + " | ".join(outcome.text.strip().splitlines()[:6])[:600])
        print(f"  again: run.py --modes {mode.name} --seed {self.args.seed} --first {difference.index} --programs 1 --ranks {ranks} --threads {int(threads)} ...")
        print(f"  in its launch: {form}", flush=True)
        self.failures.append((difference, mode, ranks, threads))
        if not self.args.no_shrink and mode is not BARE:
            self.shrink(difference, mode, ranks, threads)

    def shrink(self, difference, mode, ranks, threads):
        text = subprocess.run([self.args.binary, "--print", "--seed", str(self.args.seed), "--first", str(difference.index), "--ranks", str(ranks),
                               *flags(threads, [mode])], capture_output=True, text=True, check=True).stdout
        shrinker = Shrinker(self.launcher, mode)
        shortest, found = shrinker.shrink(text)
        if not found:
            # Shared memory is used from the third call on a communicator on.
            shortest, found = shrinker.shrink(text * 3)
        if not found:
            print("  the program alone does not fail: the failure depends on earlier programs of the launch, or on timing", flush=True)
            return
        path = os.path.join(self.args.keep or self.launcher.folder, f"fuzz-{self.args.seed}-{difference.index}-{mode.name}")
        with open(path + ".txt", "w", encoding="utf-8") as file:
            file.write(shortest)
        print(f"  shrunk by {shrinker.launches} launches to:\n{shortest}  {found}")
        self.emit(path, shortest, mode, found)

    def emit(self, path, text, mode, found):
        ranks = int(text.split("ranks=")[1].split()[0])
        outcome = self.launcher.run(BARE, ranks, ["--program", path + ".txt", "--emit", path])
        if not outcome.ended or not os.path.exists(path + ".0"):
            print("  it could not be written as C: " + outcome.text[-300:])
            return
        environment = " ".join(f"{name}={value}" for name, value in mode.environment.items())
        comment = f"Correct MPI; differs with the preload library: mode {mode.name} ({environment or 'no variables'}), {ranks} ranks.\n{found}\n\n{text}".replace("*/", "")
        with open(path + ".c", "w", encoding="utf-8") as file:
            file.write(source(path, ranks, "threads=1" in text.splitlines()[0], comment))
        for rank in range(ranks):
            os.remove(f"{path}.{rank}")
        verdict, shows = check_source(self.launcher, mode, path + ".c", ranks, self.args.mpicc)
        print(f"  as C: {verdict}{'' if shows else ' (the C program does not show it)'}")
        if self.args.keep:
            print(f"  written to {path}.c", flush=True)
        else:
            with open(path + ".c", encoding="utf-8") as file:
                text = file.read()
            print(text, flush=True)


def main():
    args = options()
    args.binary = os.path.abspath(args.binary)
    started = time.monotonic()
    if args.keep:
        os.makedirs(args.keep, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-programs-") as folder:
        run = Run(args, folder)
        for number in range((args.programs + CHUNK - 1) // CHUNK):
            run.chunk(number)
            if len(run.failures) >= args.failures or (args.seconds and time.monotonic() - started > args.seconds):
                break
        seconds = time.monotonic() - started
        print(f"{run.done} programs, {run.launcher.count} launches, {seconds:.0f} s, {len(run.failures)} failures, {run.seen_once} seen once")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
