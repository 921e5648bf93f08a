#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command that calls every intercepted collective and checks that each was respelled: compares the report with the table of functions.

  respelled_calls.py FUNCTIONS_TSV -- command...
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "interpose", "preload"))
import generate


def main(table, dashes, *command):
    wanted = {f.name for f in generate.read_table(table) if f.handling == "accelerate" and f.group in ("collective-blocking", "collective-nonblocking")}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        subprocess.run(command, check=True, env={**os.environ, "BESTRIDE_REPORT": "1", "BESTRIDE_REPORT_FILE": path}, stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            lines = json.load(file)["lines"]
    respelled = {line["call"] for line in lines if line["strategy"] == "respell"}
    missing = sorted(wanted - respelled)
    packed = sorted({line["call"] for line in lines if line["strategy"] == "pack"} & wanted)
    print(f"{len(wanted)} calls, {len(wanted & respelled)} respelled; never respelled: {missing}; packed: {packed}")
    return 1 if missing or packed or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
