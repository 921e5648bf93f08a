#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs zero_step as a user does: exit codes, error messages, JSON, and whether its check finds wrong values.

Usage: cli_test.py MPIEXEC ZERO_STEP
"""
import json
import subprocess
import sys
import unittest

MPIEXEC, ZERO_STEP = sys.argv[1:3]
SMALL = ["--layers", "2", "--hidden", "16", "--vocabulary", "33", "--steps", "2", "--micro", "3"]


def run(*arguments, ranks=1):
    return subprocess.run([MPIEXEC, "-n", str(ranks), ZERO_STEP, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120, check=False)


class Complaints(unittest.TestCase):
    def complains(self, line, *arguments):
        done = run(*arguments, ranks=2)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (2, f"zero_step: {line}\n", ""))

    def test_each(self):
        self.complains("there is no option '--speed' (--help lists them)", "--speed", "9")
        self.complains("--layers wants a value", "--layers")
        self.complains("--hidden wants a whole number from 4 to 16384, not '2x'", "--hidden", "2x")
        self.complains("--type wants one of bf16, float32, not 'int8'", "--type=int8")
        self.complains("--form wants one of blocking, nonblocking, persistent, not 'lazy'", "--form", "lazy")
        self.complains("--rate wants a number from 1e-09 to 1, not '2'", "--rate", "2")
        self.complains("--damage is only seen with --verify", "--damage", "1")

    def test_a_share_that_one_call_cannot_take(self):
        done = run("--hidden", "16384")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, "zero_step: layer 0 has 3221405696 parameters a rank, more than one call can take: "
                                      "use more ranks or a smaller --hidden\n")


class Runs(unittest.TestCase):
    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--exact", done.stdout)

    def test_json(self):
        done = run(*SMALL, "--exact", "--verify", "--json", "-", "--type", "float32", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        layer = 12 * 16 * 16 + 11 * 16
        self.assertEqual(report["parameters"], 33 * 16 + 2 * layer + 2 * 16)
        self.assertEqual(report["units"], 4)
        calls = 2 * 3 * 4
        for phase, word in (("forward gather", 4), ("backward gather", 4), ("reduce-scatter", 8)):
            self.assertEqual((report["phases"][phase]["calls"], report["phases"][phase]["bytes"]),
                             (calls, 2 * 3 * word * report["parameters"] // 2))
        self.assertEqual(len(report["step_s"]), 2)
        self.assertEqual((report["wrong"], report["values_checked"], report["gathers_checked"]),
                         (0, 3 * report["parameters"], 2 * 2 * calls))

    def test_damage_is_found(self):
        for form in ("blocking", "nonblocking"):
            for exact in ([], ["--exact"]):
                done = run(*SMALL, *exact, "--verify", "--damage", "1", "--form", form, ranks=2)
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn("step 0, forward gather of final norm: has ", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
