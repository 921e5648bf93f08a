#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the report of a repeated allgather: one cache miss, then REPETITIONS hits and one delta for a changed number.

  cache_report.py COMMAND...    hierarchical_repeated on four ranks of two nodes
"""
import json
import os
import re
import subprocess
import sys
import tempfile

RANKS, NODES, COUNT, REPETITIONS = 4, 2, 20_000, 20
WHOLE = RANKS * COUNT * 4
CROSSING = (NODES - 1) * WHOLE  # each node receives the blocks of the other nodes


def main(*command):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        run = subprocess.run([*command, str(COUNT), str(REPETITIONS)], check=True, env={**os.environ, "BESTRIDE_REPORT": "1", "BESTRIDE_REPORT_FILE": path},
                             stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        with open(path, encoding="utf-8") as file:
            cache = json.load(file)["cache"]
    saved = cache.pop("delta_saved_bytes")
    print(cache, saved, run.stderr, sep="\n")
    good = cache == {"hits": RANKS * REPETITIONS, "hit_bytes": REPETITIONS * CROSSING, "deltas": RANKS, "misses": RANKS, "paused": 0}
    # A delta sends one bit for each 16-bit word, and the words that changed.
    good = good and CROSSING * 15 // 16 - 1024 < saved < CROSSING
    good = good and re.search(rf"^cache: {RANKS * REPETITIONS} hits saved 6\.10 MiB on the wire, {RANKS} deltas \d+ KiB; {RANKS} misses, 0 paused$",
                              run.stderr, re.MULTILINE)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
