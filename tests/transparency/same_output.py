#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_output.py LIBRARY command...: checks that the command prints the same with and without LIBRARY preloaded, and exits with status 0."""
import os
import subprocess
import sys


def run(command, preload):
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    if preload:
        environment["LD_PRELOAD"] = preload
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=25)


def main():
    library, command = sys.argv[1], sys.argv[2:]
    bare, preloaded = run(command, None), run(command, library)
    if bare.returncode == 0 and preloaded.returncode == 0 and bare.stdout == preloaded.stdout:
        return 0
    before, after = bare.stdout.splitlines(), preloaded.stdout.splitlines()
    print(f"exit status {bare.returncode} and {preloaded.returncode}")
    print("\n".join([f"bare only: {line}" for line in before if line not in after]
                    + [f"preloaded only: {line}" for line in after if line not in before]))
    return 1


if __name__ == "__main__":
    sys.exit(main())
