#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench/run_collectives.py in the test bed without a preload library: it succeeds, results agree, and no algorithm sends fewer bytes
than the lower bound or many times more, so that both the bound and the count are plausible.

Usage: testbed_test.py FOLDER_OF_THE_BUILD
"""
import json
import os
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
        with tempfile.NamedTemporaryFile() as file:
            done = subprocess.run([sys.executable, "-B", RUN, "--build", sys.argv[1], "--preload", "", "--hosts", "2", "--ranks", "2,1",
                                   "--placement", "random", "--rate", "none", "--bytes", "1m", "--rounds", "1", "--count-rounds", "10",
                                   "--collectives", "allgatherv,reduce_scatter,bcast,scatter,alltoall", "--json", file.name],
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            result = json.load(file)
        self.assertEqual(sorted(result["host_of_rank"]), [0, 0, 1])
        self.assertEqual(len(result["cases"]), 5)
        for case in result["cases"]:
            self.assertEqual((case["wrong"], case["compared"]), (0, "byte by byte"))
            for variant, ratio in case["bytes_over_least"].items():
                # The bytes that the start of a job sends vary by about 40 KB.
                self.assertGreater(ratio, 0.97, (case["collective"], variant))
                self.assertLess(ratio, 4, (case["collective"], variant))


if __name__ == "__main__":
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
