#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs bench_gpu on the stand-in driver: all goals run, all bytes are right, a failing driver is reported, and no figures are printed.

Usage: stand_in_test.py BENCH_GPU FOLDER_OF_THE_STAND_IN
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

BENCH, STAND_IN = sys.argv[1:3]
GOALS = {"pack of the limit, 32 B and more", "pack of the limit, 1 to 16 B", "unpack of the limit, 32 B and more", "unpack of the limit, 1 to 16 B",
         "by hand over ours", "pack and wait over an empty kernel", "halo in one launch over the limit", "208 launches over one",
         "a copy for each block over ours", "repeated, call by call over a graph"}


def run(*arguments, **environment):
    environment = {**os.environ, "LD_LIBRARY_PATH": STAND_IN, **environment}
    environment.pop("BESTRIDE_CUDA_DRIVER", None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "gpu.json")
        done = subprocess.run([BENCH, "--json", path, *arguments], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250)
        report = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                report = json.load(file)
    return done, report


class StandIn(unittest.TestCase):
    def test_every_goal_is_there_and_right_and_has_no_figure(self):
        done, report = run("--all")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertEqual({row["goal"] for row in report["rows"]}, GOALS)
        self.assertTrue(report["stand_in"])
        self.assertEqual(report["left_out"], [])
        for row in report["rows"]:
            self.assertTrue(row["right"] and row["checked"], row)
            self.assertIsNone(row["figure"])
            self.assertFalse([name for name in row if name.endswith(("_us", "gb_s")) or name == "us"], row)
        self.assertIn("no performance", done.stdout)
        self.assertNotRegex(done.stdout, r"\bmet\b|MISSED")

    def test_the_sweep_moves_every_byte(self):
        done, report = run("--sweep")
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertGreater(len(report["rows"]), 100)
        self.assertTrue(all(row["right"] for row in report["rows"]))

    def test_a_failing_driver_is_said(self):
        done, _ = run("--only", "floor", FAKE_CUDA_FAIL="kernel:3+:CUDA_ERROR_ILLEGAL_ADDRESS")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, re.compile(r"^bench_gpu: .*CUDA_ERROR_ILLEGAL_ADDRESS", re.MULTILINE))

    def test_no_such_goal(self):
        done, _ = run("--only", "ceiling")
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
