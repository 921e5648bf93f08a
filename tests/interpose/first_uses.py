#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command and checks how many of its calls were left to the MPI library because a datatype was used for the first time.

  first_uses.py EXPECTED -- command...
"""
import json
import os
import subprocess
import sys
import tempfile


def main(expected, dashes, *command):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        subprocess.run(command, check=True, env={**os.environ, "BESTRIDE_REPORT": "1", "BESTRIDE_REPORT_FILE": path}, stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            lines = json.load(file)["lines"]
    left = sum(line["calls"] for line in lines if line["reason"] == "first use")
    taken = sum(line["calls"] for line in lines if line["strategy"] == "pack")
    print(f"{left} calls left at the first use, {taken} packed here")
    return 0 if left == int(expected) and taken > left else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
