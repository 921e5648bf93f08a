#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A watched job while the clock of its ranks or of the watch is set, and ranks with clocks of their own."""
import os
import shutil
import subprocess
import unittest

from followed_job import MPIEXEC, PROGRAM, FollowedJobs

HOUR = 3600


class Clock(FollowedJobs):
    def times_are_sane(self, job, finding):
        self.assertGreater(finding["since"], 0)
        self.assertLess(finding["since"], finding["found"])
        self.assertLess(finding["found"], 600, job.output())
        self.assertNotRegex(job.output(), r"for -|-\d+ s|\d h\b")

    def jumping(self, program, by, after):
        return self.start(environment=os.environ | {"LD_PRELOAD": os.environ["CLOCK_JUMP"], "CLOCK_JUMP_IN": os.path.basename(program),
                                                    "CLOCK_JUMP_BY": str(by), "CLOCK_JUMP_AFTER": str(after)})

    def test_the_clock_is_set(self):
        """Before the job begins, or while it runs."""
        for program in (PROGRAM, "bestride"):
            jobs = [self.jumping(program, by, after) for by in (HOUR, -HOUR) for after in (0, 2)]
            for job in jobs:
                job.ranks()
            for i, job in enumerate(jobs):
                with self.subTest(program=os.path.basename(program), job=i):
                    if i % 2:
                        job.tell("crash")
                        job.wait()
                        finding = job.until_found()
                        self.assertEqual((finding["class"], finding["culprits"]), ("crash", [1]), job.output())
                        self.assertIn("::crash", finding["text"], job.output())
                    else:
                        finding, _ = self.finds_a_hang(job)
                        self.times_are_sane(job, finding)
                    self.assertEqual(len(job.findings()), 1, job.output())

    def test_a_time_namespace(self):
        """Ranks whose clocks begin elsewhere: a container that was restored."""
        if not shutil.which("unshare") or subprocess.run(["unshare", "--time", "--fork", "true"], check=False, stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("time namespaces can't be made here")
        job = self.start([MPIEXEC, "-n", "2", "unshare", "--time", "--monotonic", str(HOUR), "--boottime", str(HOUR), "--fork", "{program}", "{folder}"])
        job.ranks()
        with job.blocked():
            pass
        finding, _ = self.finds_a_hang(job)
        self.times_are_sane(job, finding)
        self.assertEqual(len(job.findings()), 1, job.output())


if __name__ == "__main__":
    unittest.main()
