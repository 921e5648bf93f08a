#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts with callgrind how many instructions a resolved stub adds to a call that is not intercepted. The count does not depend on the
load of the machine. Start-up and the first call cancel out in the difference of two runs.

  count_instructions.py LIBBESTRIDE LIMIT -- program spin        (the number of calls is appended)
"""
import os
import re
import subprocess
import sys
import tempfile

CALLS = 20000


def instructions(command, calls, preload):
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment.update({"LD_PRELOAD": preload, "BESTRIDE_DISABLE": "1"} if preload else {})
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", *command, str(calls)],
                             env=environment, stderr=subprocess.PIPE, text=True)
    counted = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode or not counted:
        sys.exit(f"valgrind {' '.join(command)}: {ran.stderr}")
    return int(counted[1])


def per_call(command, preload):
    return (instructions(command, 2 * CALLS, preload) - instructions(command, CALLS, preload)) / CALLS


def main(library, limit, dashes, *command):
    without, with_ = per_call(command, ""), per_call(command, library)
    print(f"{without:.3f} instructions per call without the preload library, {with_:.3f} with it: {with_ - without:.3f} more, limit {limit}")
    # With fewer than one more, the calls did not go through the stub.
    return 0 if 1 <= round(with_ - without, 2) <= float(limit) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
