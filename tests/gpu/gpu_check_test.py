#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the logic of scripts/gpu-check without building anything: a failed step keeps the results of the others, the JSON is always
written, missing parts are reported, and the time limit is respected.

Usage: gpu_check_test.py SCRIPT
"""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SCRIPT = sys.argv[1]


def load():
    loader = importlib.machinery.SourceFileLoader("gpu_check", SCRIPT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


gpu_check = load()


class Logic(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.out = folder.name

    def check(self, stand_in=True, minutes=9.0, **steps):
        made = gpu_check.Check(argparse.Namespace(stand_in=stand_in, out=self.out, minutes=minutes))
        self.addCleanup(made.log.close)
        made.tree = os.path.join(self.out, "tree")
        for name, step in steps.items():
            setattr(made, name, step)
        return made

    def run_all(self, check):
        """(exit code, {step: (result, note)} of the JSON)"""
        code = check.all()
        with open(os.path.join(self.out, "gpu-check.json"), encoding="utf-8") as file:
            report = json.load(file)
        return code, {one["step"]: (one["result"], one["note"]) for one in report["steps"]}

    def fine(self, **steps):
        good = {name: lambda seconds: ("ok", "") for name in ("build", "tests", "bench", "calibrate", "messages", "halo", "memcheck", "racecheck", "sweep")}
        return self.check(**{**good, **steps})

    def test_a_step_that_fails_or_breaks_loses_no_other(self):
        def breaks(_):
            raise ValueError("not JSON")

        code, steps = self.run_all(self.fine(tests=lambda seconds: ("FAILED", "one"), bench=breaks))
        self.assertEqual(code, 1)
        self.assertEqual(steps["bench"], ("FAILED", "ValueError: not JSON"))
        self.assertEqual([steps[name][0] for name in ("build", "messages", "halo", "memcheck", "racecheck", "sweep")], ["ok"] * 6)
        self.assertEqual(self.run_all(self.fine())[0], 0)

    def test_what_ends_the_script_leaves_what_there_was(self):
        def ended(_):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            self.fine(halo=ended).all()
        with open(os.path.join(self.out, "gpu-check.json"), encoding="utf-8") as file:
            self.assertEqual([one["step"] for one in json.load(file)["steps"]], ["build", "tests", "bench", "calibrate", "messages"])

    def test_without_a_build_nothing_runs(self):
        code, steps = self.run_all(self.fine(build=lambda seconds: ("FAILED", "no compiler")))
        self.assertEqual(code, 1)
        self.assertTrue(all(step == ("skipped", "nothing was built") for name, step in steps.items() if name != "build"))

    def test_a_step_gets_its_share_and_no_more(self):
        given = {}
        check = self.fine(**{name: (lambda seconds, name=name: (given.__setitem__(name, seconds), ("ok", ""))[1])
                             for name in ("build", "tests", "bench", "messages", "halo", "memcheck", "racecheck", "sweep")})
        self.run_all(check)
        self.assertTrue(all(0 < seconds <= 300 for seconds in given.values()), given)
        check = self.fine()
        self.assertLessEqual(sum(share for _, _, share, _ in check.steps()), 9 * 60)
        check.deadline = time.monotonic() + 5
        _, steps = self.run_all(check)
        self.assertEqual(steps.pop("build"), ("skipped", "would not fit into the time"))
        self.assertEqual(set(steps.values()), {("skipped", "nothing was built")})

    def test_absent_tools_are_said(self):
        check = self.check(stand_in=False)
        find, gpu_check.find_tool = gpu_check.find_tool, lambda name, *places: None
        self.addCleanup(setattr, gpu_check, "find_tool", find)
        self.assertEqual(check.memcheck(10), ("skipped", "compute-sanitizer is not installed"))
        result, note = check.build(10)
        self.assertEqual(result, "FAILED")
        for tool in ("cmake (3.25 or later)", "a C++20 compiler", "nvcc (the CUDA toolkit)", "ninja or make"):
            self.assertIn(tool, note)

    def test_an_absent_driver_or_device_is_said(self):
        class NoDevice:
            cuInit = staticmethod(lambda flags: 100)

        def absent(_):
            raise OSError("libcuda.so.1: cannot open shared object file")

        self.addCleanup(setattr, gpu_check.ctypes, "CDLL", gpu_check.ctypes.CDLL)
        gpu_check.ctypes.CDLL = absent
        self.assertEqual(gpu_check.device(), "no CUDA driver: libcuda.so.1: cannot open shared object file")
        gpu_check.ctypes.CDLL = lambda name: NoDevice()
        self.assertEqual(gpu_check.device(), "cuInit failed with code 100")

    def test_an_old_cmake_is_said(self):
        old = os.path.join(self.out, "cmake")
        with open(old, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho cmake version 3.22.1\n")
        os.chmod(old, 0o755)
        find, gpu_check.find_tool = gpu_check.find_tool, lambda name, *places: old if name == "cmake" else "/bin/true"
        self.addCleanup(setattr, gpu_check, "find_tool", find)
        result, note = self.check().build(10)
        self.assertEqual(result, "FAILED")
        self.assertIn("cmake 3.25 or later", note)

    def test_without_mpi_messages_and_the_halo_are_left_out(self):
        self.assertEqual(self.check().messages(10), ("skipped", "no MPI in this build"))
        self.assertEqual(self.check().halo(10), ("skipped", "no MPI in this build"))

    def test_a_program_that_hangs_ends_in_time(self):
        start = time.monotonic()
        code, _ = self.check().run(["/bin/sh", "-c", "sleep 100 & sleep 100"], 1)
        self.assertIsNone(code)
        self.assertLess(time.monotonic() - start, 50)

    def test_what_others_need_runs_first(self):
        ran = []
        check = self.check()
        check.listed = lambda end: [{"name": "uses", "command": ["x"]},
                                    {"name": "makes", "command": ["x"], "properties": [{"name": "FIXTURES_SETUP", "value": ["it"]}]}]
        check.test = lambda test, end: ran.append(test["name"]) or {"name": test["name"], "result": "ok"}
        self.assertEqual(check.tests(10)[0], "ok")
        self.assertEqual(ran, ["makes", "uses"])

    def test_on_hardware_nothing_of_the_stand_in_is_left(self):
        tests = [{"name": "fails", "command": ["a"], "environment": {"FAKE_CUDA_FAIL": "x"}},
                 {"name": "plain", "command": ["b"], "environment": {"LD_LIBRARY_PATH": "/b/lib/fake_cuda:/usr/x"}},
                 {"name": "delayed", "command": ["b"], "environment": {"LD_LIBRARY_PATH": "/b/lib/fake_cuda:/usr/x", "FAKE_CUDA_DELAY_US": "3"}}]
        gpu_check.Check.for_hardware(tests)
        self.assertIn("failures", tests[0]["why"])
        self.assertNotIn("why", tests[1])
        self.assertNotIn("fake_cuda", tests[1]["environment"]["LD_LIBRARY_PATH"])
        self.assertIn("plain", tests[2]["why"])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
