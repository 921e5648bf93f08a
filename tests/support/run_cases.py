#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a program of tests/support/harness.hpp in one job, and names the cases that fail.

  run_cases.py --mpiexec PATH --ranks N [--preload LIBRARY] [--set NAME=VALUE]... [--limit SECONDS] program [case...]

One job runs all cases of the program, or those named, except each MPI_CASE_ALONE, which has a job of its own. If the common job fails, or
no case ends in it within --limit, every case that has not passed runs again, in a job of its own. A case that fails in its own job runs
once more without the preload library, to show whether Bestride is the cause. The exit status is 0 only if every case passes at once.
With TEST_ALONE in the environment every case has a job of its own: only there it has the first use of everything in a process.
"""
import argparse
import os
import re
import selectors
import signal
import subprocess
import sys
import time


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Job:
    """One run of some cases: those that `passed` and `failed`, and `how` it ended ("" if well)."""

    def __init__(self, command, limit):
        self.passed, self.failed, self.how = set(), set(), ""
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        with selectors.DefaultSelector() as ready:
            ready.register(job.stdout, selectors.EVENT_READ)
            self.read(job.stdout.fileno(), ready, limit)
        if self.how:
            job.send_signal(signal.SIGTERM)  # mpiexec ends the ranks
        try:
            status = job.wait(10)
        except subprocess.TimeoutExpired:
            job.kill()
            status = job.wait()
        if not self.how and status != 0:
            self.how = f"ended with signal {-status}" if status < 0 else f"ended with status {status}"

    def read(self, output, ready, limit):
        """Prints the output until it ends, or until no case ends within the limit."""
        line, until = b"", time.monotonic() + limit
        while True:
            if not ready.select(max(0.0, until - time.monotonic())):
                self.how = f"no case ended within {limit:g} s"
                return
            some = os.read(output, 65536)
            if not some:
                return
            sys.stdout.buffer.write(some)
            sys.stdout.flush()
            *lines, line = (line + some).split(b"\n")
            for each in lines:
                ended = re.search(rb"(passed|FAILED) (\w+)(: \d+ checks)?$", each)
                if ended:
                    (self.passed if ended[1] == b"passed" else self.failed).add(ended[2].decode())
                    until = time.monotonic() + limit


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--ranks", required=True)
    parser.add_argument("--preload")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()

    def run(cases, preload):
        words = [given.mpiexec, "-n", given.ranks]
        for pair in ([f"LD_PRELOAD={preload}"] if preload else []) + given.set:
            words += ["-genv", *pair.split("=", 1)]
        job = Job(words + [given.program, "--only", *cases], given.limit)
        if not job.how and not job.passed.issuperset(cases):
            job.how = "a case has no result"
        return job

    listed = subprocess.run([given.program, "--list"], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    needs_own_job = {line.split()[0] for line in listed if line.endswith(" alone") or os.environ.get("TEST_ALONE")}
    cases = given.cases or [line.split()[0] for line in listed]
    common = [case for case in cases if case not in needs_own_job]
    own = [case for case in cases if case in needs_own_job]
    suspects, verdicts = [], []
    if common:
        together = run(common, given.preload)
        again = [case for case in common if case not in together.passed]
        if together.how:
            # A job that crashes or hangs does so in the first case without a result.
            suspects = [case for case in common if case in together.failed] + [case for case in again if case not in together.failed][:1]
            say(f"\n--- {together.how}: {len(together.passed)} of {len(common)} cases passed; now {'the others' if again else 'all'} in jobs of their own")
            own += again or common
            if not again:
                verdicts.append(f"FAILED the end of the common job, after all cases had passed: {together.how}")
    for case in own:
        say(f"--- {case}")
        alone = run([case], given.preload)
        if alone.how and given.preload:
            say(f"--- {case}, without the preload library")
            plain = "fails" if run([case], None).how else "passes"
            verdicts.append(f"FAILED {case}: {alone.how}; without the preload library it {plain}")
        elif alone.how:
            verdicts.append(f"FAILED {case}: {alone.how}")
        elif case in suspects:
            verdicts.append(f"FAILED {case} in the common job, after other cases: {together.how}; it passes in a job of its own")
    say(f"\n{len(cases)} cases, {len(verdicts)} failures" if verdicts else f"all {len(cases)} cases passed")
    for verdict in verdicts:
        say(verdict)
    return 1 if verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
