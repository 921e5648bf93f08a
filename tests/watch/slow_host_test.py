#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --watch` of a job on four hosts of the test bed, one of which has a slower network."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testbed"))
from bed import Bed, reason_against, tool  # noqa: E402  pylint: disable=wrong-import-position

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LIBRARY = os.environ["LIBRARY"]
EXCHANGE = os.environ["EXCHANGE"]
SKIPPED = 77


class SlowHost(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = Bed(4, "200mbit")

    @classmethod
    def tearDownClass(cls):
        cls.bed.__exit__()

    def findings(self, seconds):
        """The findings of a run, and its output."""
        folder = tempfile.mkdtemp(prefix="bestride-watch-")
        self.addCleanup(shutil.rmtree, folder)
        words = ["ip", "netns", "exec", f"{self.bed.name}-sw", "env", f"TB={self.bed.name}", COMMAND, "run", "--watch", "--verdict-folder", folder,
                 "--", tool("run.sh"), "-p", "1", "-l", LIBRARY, EXCHANGE, str(seconds), str(1 << 20)]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180, cwd=folder, check=False)
        output = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, output)
        for name in os.listdir(folder):
            if name.endswith(".verdict.json"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    return json.load(file)["findings"], output
        return [], output

    def test_equal_hosts_are_silent(self):
        self.bed.call("rate.sh", "200mbit")
        found, output = self.findings(30)
        self.assertEqual(found, [], output)

    def test_a_host_with_a_quarter_of_the_rate(self):
        self.bed.call("rate.sh", "200mbit")
        self.bed.call("rate.sh", "50mbit", 2)
        found, output = self.findings(90)
        slow = [finding for finding in found if finding["class"] == "slow communication"]
        self.assertEqual(len(slow), 1, output)
        self.assertEqual(slow[0]["culprits"], [2], output)
        self.assertEqual(slow[0]["path"]["host"], "h2")
        self.assertIn(slow[0]["path"]["kind"], ("send", "send and receive"))
        self.assertGreater(slow[0]["factor"], 1.5)
        self.assertRegex(output, r"(?m)^bestride: slow communication: messages that host h2 sends")


if __name__ == "__main__":
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    unittest.main()
