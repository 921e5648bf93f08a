#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""fortran_test.py BESTRIDE MPIEXEC SOURCE PROGRAM...: each line of a Fortran program that calls MPI is a separate place in the report.

The lines are those that end in '! N calls'. Two ranks make the calls.
"""
import json
import os
import re
import subprocess
import sys
import tempfile


def expected(source):
    calls = {}
    with open(source, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if match := re.search(r"call (MPI_\w+)\(.*! (\d+) calls$", line):
                calls[f"{match.group(1)} at call_sites ({os.path.basename(source)}:{number})"] = 2 * int(match.group(2))
    return calls


def reported(bestride, mpiexec, program):
    with tempfile.TemporaryDirectory(prefix="bestride-fortran-") as folder:
        subprocess.run([bestride, "run", "--report", "--verdict-folder", folder, "--", mpiexec, "-n", "2", program], check=True, timeout=120,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        name = next(name for name in os.listdir(folder) if name.endswith(".report.json"))
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            sites = json.load(file)["sites"]
    return {f"{site['function']} at {site['place']}": site["calls"] for site in sites}


def main():
    bestride, mpiexec, source, *programs = sys.argv[1:]
    wanted = expected(source)
    wrong = len(wanted) < 5
    for program in programs:
        found = reported(bestride, mpiexec, program)
        for place, calls in wanted.items():
            if found.get(place) != calls:
                print(f"{program}: {found.get(place)} calls of {place}, expected {calls}; found {found}")
                wrong = True
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
