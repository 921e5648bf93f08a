#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command without and with the preload library, each lazily bound and with LD_BIND_NOW=1, and compares what it prints.

  compare_runs.py LIBRARIES WITHOUT WITH -- command...

LIBRARIES are preloaded, separated by colons; libbestride.so is left out of the runs without it.

All lines must be equal, except those that begin with "calls:": they must be WITHOUT and WITH, several separated by slashes (-: none).
"""
import os
import subprocess
import sys


def run(command, **variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BESTRIDE_") and k not in ("LD_PRELOAD", "LD_BIND_NOW")}
    ran = subprocess.run(command, env={**environment, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    lines = ran.stdout.splitlines() + [f"exit status {ran.returncode}"]
    return [line for line in lines if not line.startswith("calls:")], [line[7:] for line in lines if line.startswith("calls:")]


def main(libraries, without, with_, dashes, *command):
    others = ":".join(library for library in libraries.split(":") if os.path.basename(library) != "libbestride.so")
    wrong = []
    for binding in ({}, {"LD_BIND_NOW": "1"}):
        bare, bare_calls = run(command, LD_PRELOAD=others, **binding)
        preloaded, calls = run(command, LD_PRELOAD=libraries, **binding)
        disabled, disabled_calls = run(command, LD_PRELOAD=libraries, BESTRIDE_DISABLE="1", **binding)
        for name, lines in (("preloaded", preloaded), ("disabled", disabled)):
            if lines != bare:
                wrong += [f"{name} {binding}:", *(f"{'bare' if i else name}: {line}" for pair in zip(lines, bare) if pair[0] != pair[1]
                                                  for i, line in enumerate(pair)), *lines[len(bare):]]
        for name, seen, expected in (("bare", bare_calls, without), ("preloaded", calls, with_), ("disabled", disabled_calls, without)):
            if seen != ([] if expected == "-" else expected.split("/")):
                wrong.append(f"{name} {binding}: calls returned {seen} instead of {expected}")
    print("\n".join(wrong) or f"{len(bare)} equal lines:\n" + "\n".join(bare))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
