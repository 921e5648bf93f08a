#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs erroneous collective calls, whose lengths differ between the ranks, without and with the preload library.

mismatched.py --binary FILE --library FILE [--programs 10] [--seed 1] [--first 0] [--modes a,b]

Each rank's error class must be the one that it gets bare, and its data, too, if that is MPI_SUCCESS. A call that MPI alone does not complete
in the same way three times is not compared. Each program is one launch, whose ranks end themselves after some seconds.
"""
import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

from launch import BARE, MODES, Launcher

BARE_RUNS = 3
SECONDS = (6, 12, 24)  # a launch that does not end in this time is tried again: more ranks than processors spin, beside other work
TRUNCATE = "14"  # MPICH's MPI_ERR_TRUNCATE
RANKS = (2, 2, 2, 3, 4)
# As in the ordinary programs, and with shared memory even for short messages.
DEFAULT_MODES = "default,one_node"


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--mpiexec", default=shutil.which("mpiexec.mpich") or shutil.which("mpiexec.hydra") or "mpiexec")
    parser.add_argument("--programs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=0, help="default: random for each program")
    parser.add_argument("--modes", default=DEFAULT_MODES)
    parser.add_argument("--failures", type=int, default=1, help="stop after this many failures")
    return parser.parse_args()


def calls_of(trace):
    """[(call, error class, digest)] of one rank, in order."""
    return re.findall(r" (\w+)=(-?\d+) in=([0-9a-f]+)", trace)


class Run:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.launcher = Launcher(os.path.abspath(args.binary), os.path.abspath(args.library), {}, args.mpiexec, folder, 0)

    def launch(self, mode, ranks, index, seconds=SECONDS[0]):
        """The calls of each rank, or None if the launch does not end by itself."""
        prefix = os.path.join(self.folder, "trace")
        call = [self.launcher.program, "--mismatched", "--seed", str(self.args.seed), "--first", str(index), "--count", "1", "--trace", prefix,
                "--seconds", str(seconds)]
        status = subprocess.run(self.launcher.command(mode, ranks, call), stdin=subprocess.DEVNULL, capture_output=True, cwd=self.folder, check=False).returncode
        if status:
            return None
        found = []
        for rank in range(ranks):
            with open(f"{prefix}.{rank}", encoding="utf-8") as file:
                found.append(calls_of(file.read().replace("\n", " ")))
        return found

    def program(self, index):
        """The failures of one program; None if MPI alone is not deterministic."""
        ranks = self.args.ranks or random.Random(f"{self.args.seed} {index}").choice(RANKS)
        bare = [self.launch(BARE, ranks, index) for _ in range(BARE_RUNS)]
        if None in bare or any(self.difference(bare[0], other) for other in bare[1:]):
            return None
        failures = []
        for mode in self.args.modes.split(","):
            other = None
            for seconds in SECONDS:
                other = other or self.launch(MODES[mode], ranks, index, seconds)
            difference = "hang or crash" if other is None else self.difference(bare[0], other)
            if difference:
                failures.append(f"FAILED {mode}, {ranks} ranks, --seed {self.args.seed} --first {index} --ranks {ranks} --programs 1 --modes {mode}: {bare[0][0][0][0]}: {difference}")
        return failures

    @staticmethod
    def difference(bare, other):
        for rank, (expected, got) in enumerate(zip(bare, other)):
            for number, (want, have) in enumerate(zip(expected, got)):
                # With more ranks, blocks pass through others in the library, and what it notices depends on its tree.
                relayed = len(bare) > 2 and want[0] in ("gather", "scatter", "reduce")
                if relayed and want[1] == "0" and have[1] in ("0", TRUNCATE):
                    continue
                if want[1] != have[1]:
                    return f"rank {rank}, call {number}: class {have[1]} instead of {want[1]}"
                # The library combines what a shorter message has left in its own memory.
                if want[1] == "0" and want[2] != have[2] and want[0] not in ("reduce", "allreduce"):
                    return f"rank {rank}, call {number}: other data"
        return None


def main():
    args = options()
    failures, skipped = [], 0
    with tempfile.TemporaryDirectory(prefix="fuzz-mismatched-") as folder:
        run = Run(args, folder)
        for index in range(args.first, args.first + args.programs):
            found = run.program(index)
            if found is None:
                skipped += 1
                continue
            failures += found
            for one in found:
                print(one, flush=True)
            if len(failures) >= args.failures:
                break
    print(f"{args.programs} programs, {skipped} not compared, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
