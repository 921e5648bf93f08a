#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `bestride calibrate` on this machine, for a second or two at a time: what it writes, says, refuses and goes on with."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
MPIEXEC = os.environ["MPIEXEC"]


class CalibrateTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-calibrate-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.profile = f"{self.folder}/new/profile.json"

    def calibrate(self, *words):
        for name, value in (("--mpiexec", MPIEXEC), ("--output", self.profile)):
            if name not in words:
                words += (name, value)
        return subprocess.run([COMMAND, "calibrate", *words], text=True, capture_output=True,
                              timeout=120, check=False, stdin=subprocess.DEVNULL)

    def refused(self, *words, code=2):
        done = self.calibrate(*words)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertFalse(os.path.exists(self.profile))
        return done.stderr

    def test_writes_a_profile_and_goes_on_with_the_rest(self):
        first = self.calibrate("--budget", "1", "--only", "pack,unpack")
        self.assertEqual(first.returncode, 0, first.stderr)
        self.assertIn("left out for time", first.stdout)
        self.assertIn(f"written to {self.profile}", first.stdout)
        with open(self.profile, encoding="utf-8") as file:
            profile = json.load(file)
        self.assertEqual(profile["format"], "bestride-profile")
        self.assertEqual({grid["lane"] for grid in profile["grids"]} - {"pack", "unpack"}, set())
        self.assertIn("MPICH", profile["fingerprint"]["mpi_library"])
        second = self.calibrate("--budget", "1", "--only", "pack,unpack")
        self.assertIn("were known", second.stdout)
        with open(self.profile, encoding="utf-8") as file:
            more = json.load(file)
        count = lambda p: sum(ns is not None for grid in p["grids"] for row in grid["ns"] for ns in row)
        self.assertGreater(count(more), count(profile))

    def test_interrupted_it_keeps_what_it_has(self):
        words = [COMMAND, "calibrate", "--mpiexec", MPIEXEC, "--output", self.profile]
        with subprocess.Popen(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
            state = f"{self.profile}.state"
            deadline = time.time() + 60
            while time.time() < deadline and not (os.path.exists(state) and "done" in open(state, encoding="utf-8").read()):
                time.sleep(0.1)
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("goes on from here", said)
        self.assertFalse(os.path.exists(self.profile))
        done = self.calibrate("--quick", "--budget", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("were known", done.stdout)

    def test_says_what_is_wrong(self):
        self.assertIn("unknown call kind 'sned'", self.refused("--only", "sned"))
        self.assertIn("can't find the launcher", self.refused("--mpiexec", "/nonexistent/mpiexec"))
        self.assertIn("is a folder", self.refused("--output", self.folder))
        self.assertIn("--output", self.refused("--output", "/proc/nothing/profile.json"))

    def test_a_launcher_that_fails_or_is_another_mpis(self):
        broken = f"{self.folder}/broken"
        with open(broken, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho 'no hosts for you' >&2\nexit 3\n")
        os.chmod(broken, 0o755)
        self.assertIn("no hosts for you", self.refused("--mpiexec", broken, code=1))
        # Ranks that do not see each other: what another MPI's launcher makes of them.
        single = f"{self.folder}/single"
        with open(single, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nshift 2\nexec "$@"\n')
        os.chmod(single, 0o755)
        self.assertIn("needs two ranks, but sees 1", self.refused("--mpiexec", single, code=1))


if __name__ == "__main__":
    unittest.main()
