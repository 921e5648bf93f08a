#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench/run_collectives.py in the test bed without a preload library: it succeeds, results agree, and no algorithm sends fewer bytes
than the lower bound or many times more, so that both the bound and the count are plausible.

Usage: testbed_test.py FOLDER_OF_THE_BUILD
"""
import csv
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RUN = os.path.join(HERE, "..", "run_collectives.py")
sys.path.insert(0, os.path.join(HERE, "..", "..", "tests", "testbed"))
from bed import reason_against  # noqa: E402

SKIPPED = 77


class Bytes(unittest.TestCase):
    def test_between_the_least_and_many_times_as_many(self):
        with tempfile.NamedTemporaryFile("r", encoding="utf-8") as file:
            done = subprocess.run([sys.executable, "-B", RUN, "--build", sys.argv[1], "--preload", "", "--hosts", "2", "--ranks", "2,1",
                                   "--placement", "random", "--rate", "none", "--bytes", "1m", "--rounds", "1", "--count-rounds", "10",
                                   "--collectives", "allgatherv,reduce_scatter,bcast,scatter,alltoall", "--table", file.name],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            text = file.read()
        self.assertEqual(sorted(re.search(r"host_of_rank: \[(.*)\]", text).group(1).split(", ")), ["0", "0", "1"])
        cases = list(csv.DictReader((line for line in text.splitlines() if not line.startswith("#")), delimiter="\t"))
        self.assertEqual(len(cases), 5)
        self.assertEqual(done.stdout.count("| same, byte by byte"), 5)
        for case in cases:
            for variant in ("ours", "library", "nonblocking"):
                # The bytes that the start of a job sends vary by about 40 KB.
                ratio = float(case[f"{variant}_bytes"])
                self.assertGreater(ratio, 0.97, (case["collective"], variant))
                self.assertLess(ratio, 4, (case["collective"], variant))


if __name__ == "__main__":
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
