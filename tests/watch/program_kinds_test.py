#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Watched programs of kinds that a detector may misjudge: clean until the end, and then with a fault.

`Long` has those that take minutes."""
import os
import subprocess
import unittest

from followed_job import COMMAND, MPIEXEC, FollowedJobs, eventually

NOT_RECORDED = "more than 256 communicators, windows and files at a time in ranks 0,1"


class Jobs(FollowedJobs):
    def is_clean(self, job):
        self.assertEqual((job.said(), job.findings()), ([], []), job.output())

    def communicators(self, count, together):
        """The job after it has made them."""
        job = self.start()
        job.ranks()
        job.tell(f"communicators {count} {together}")
        job.until_told()
        job.tell("processes")
        self.assertTrue(eventually(lambda: not os.path.exists(job.path("command")), 400), job.output())
        self.is_clean(job)
        return job


class Short(Jobs):
    """The cases that scripts/test runs."""

    def test_more_ranks_than_cores(self):
        for fault in ("hang", "crash", "end 0"):
            with self.subTest(fault):
                job = self.start(ranks=8)
                job.ranks()
                self.is_clean(job)
                if fault == "hang":
                    self.finds_a_hang(job)
                elif fault == "crash":
                    job.tell(fault)
                    job.wait()
                    self.assertEqual([(each["class"], each["culprits"]) for each in job.findings()], [("crash", [1])], job.output())
                else:
                    self.ends_with(job, 0)
                    self.is_clean(job)

    def test_checkpoints_that_grow(self):
        """Only a line that says how long they take."""
        job = self.start()
        job.ranks()
        job.tell("checkpoints 8")
        job.until_told()
        job.tell("end 0")
        self.assertEqual(job.wait(), 0, job.output())
        self.assertEqual(job.findings(), [])
        self.assertTrue(all("this may be its work" in line for line in job.said()), job.output())

    def test_communicators_one_after_the_other(self):
        job = self.communicators(5000, 1)
        self.finds_a_hang(job)
        self.assertNotIn(NOT_RECORDED, job.output())

    def test_many_communicators_at_a_time(self):
        job = self.communicators(1000, 1000)
        self.finds_a_hang(job)
        self.assertTrue(eventually(lambda: f"  evidence: {NOT_RECORDED}: " in job.output()), job.output())
        where = subprocess.run([COMMAND, "where", str(job.launcher())], text=True, capture_output=True, check=True).stdout
        self.assertIn(f"\n  {NOT_RECORDED}: ", where)

    def test_a_program_that_starts_processes(self):
        job = self.start()
        job.ranks()
        for _ in range(5):
            job.tell("processes")
            job.until_told()
        self.is_clean(job)
        self.finds_a_hang(job)

    def test_a_program_that_executes_itself(self):
        job = self.start([MPIEXEC, "-n", "2", "{program}", "{folder}", "exec"])
        job.ranks()
        self.is_clean(job)
        self.finds_a_hang(job)
        self.assertEqual(len(job.findings()), 1, job.output())

    def test_several_programs(self):
        job = self.start([MPIEXEC, "-n", "1", "{program}", "{folder}", ":", "-n", "1", "{program}", "{folder}", "exec"])
        job.ranks()
        self.finds_a_hang(job)

    def test_several_launchers_of_one_script(self):
        """One after the other, and two at the same time, of which one has a fault."""
        one = f"{MPIEXEC} -n 2 {{program}} {{folder}}"
        job = self.start(["sh", "-c", f"{one}; mkdir {{folder}}/other; {MPIEXEC} -n 2 {{program}} {{folder}}/other & {one}; wait"], ranks=2)
        job.ranks()
        job.tell("end 0")
        job.until_told()
        job.size = 4
        self.assertTrue(eventually(lambda: len(job.records()) == 4), job.output())
        self.is_clean(job)
        job.tell("crash")
        job.until_found()
        with open(job.path("other/command"), "w", encoding="utf-8") as file:
            file.write("end 0\n")
        self.assertEqual(job.wait(), 0, job.output())
        self.assertEqual([(each["class"], each["culprits"]) for each in job.findings()], [("crash", [1])], job.output())


class Long(Jobs):
    """Only in scripts/long-test."""

    def test_a_hundred_thousand_communicators(self):
        self.finds_a_hang(self.communicators(100_000, 1))


if __name__ == "__main__":
    unittest.main()
