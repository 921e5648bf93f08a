#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command and compares its output.

  expect.py [--env NAME=VALUE]... [--cwd DIR] [--status N] [--match REGEX]... [--times N] [--lines N] -- command...

--match: a line of stdout or stderr that must occur exactly --times times (default 1). --lines: how many lines may start with
"bestride:" (default 0: the library is silent). The exit status must be --status (default 0).
"""
import argparse
import os
import re
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--cwd")
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--match", action="append", default=[])
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--lines", type=int, default=0)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()

    environment = {k: v for k, v in os.environ.items() if not k.startswith("BESTRIDE_") and k not in ("LD_PRELOAD", "LD_BIND_NOW")}
    environment["BESTRIDE_YIELD"] = "off"  # its message depends on the number of processors
    environment.update(pair.split("=", 1) for pair in given.env)
    ran = subprocess.run(given.command, env=environment, cwd=given.cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lines = ran.stdout.splitlines() + ran.stderr.splitlines()

    wrong = []
    if ran.returncode != given.status:
        wrong.append(f"exit status {ran.returncode} instead of {given.status}")
    for pattern in given.match:
        found = sum(1 for line in lines if re.search(pattern, line))
        if found != given.times:
            wrong.append(f"{found} lines instead of {given.times} match {pattern}")
    own = sum(1 for line in lines if line.startswith("bestride:"))
    if own != given.lines:
        wrong.append(f"{own} lines of the library instead of {given.lines}")
    if wrong:
        print("\n".join(wrong + ["--- stdout", ran.stdout, "--- stderr", ran.stderr]))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
