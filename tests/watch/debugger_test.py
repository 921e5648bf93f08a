#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks of a watched job under a debugger or another tracer."""
import shutil
import subprocess
import sys
import unittest

from followed_job import MPIEXEC, FollowedJobs, eventually

SKIPPED = 77
HELD = 6  # seconds
TOOLS = [name for name in ("gdb", "strace") if not shutil.which(name)]


class Traced(FollowedJobs):
    def test_a_debugger_is_attached_and_detached(self):
        """While it holds rank 1, which is blocked."""
        job = self.start()
        blocked = next(pid for pid, path in job.records().items() if self.rank_of(path) == 1) if job.ranks() else 0
        with job.blocked():
            subprocess.run(["gdb", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", f"shell sleep {HELD}", "-ex", "detach", "-p", str(blocked)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120, check=True)
            self.assertTrue(eventually(lambda: any("the job goes on" in line for line in job.said())), job.output())
            self.assertEqual([(each["class"], each["cause"], each["culprits"]) for each in job.findings()], [("stopped", "traced", [1])], job.output())
        self.finds_a_hang(job)
        self.assertEqual(len(job.findings()), 2, job.output())

    @staticmethod
    def rank_of(path):
        """The number that the launcher gave the process of a record."""
        pid = path.rpartition("/")[2].partition(".")[0]
        with open(f"/proc/{pid}/environ", "rb") as file:
            return int(dict(each.partition(b"=")[::2] for each in file.read().split(b"\0"))[b"PMI_RANK"])

    def test_tools_that_run_a_rank(self):
        for tool in (["gdb", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", "run", "--args"], ["strace", "-f", "-o", "/dev/null"]):
            with self.subTest(tool[0]):
                job = self.start([MPIEXEC, "-n", "1", *tool, "{program}", "{folder}", ":", "-n", "1", "{program}", "{folder}"])
                job.ranks()
                with job.blocked():
                    pass
                self.assertEqual(job.said(), [], job.output())
                self.finds_a_hang(job)
                self.assertEqual(len(job.findings()), 1, job.output())

    def test_a_clean_job_under_tools(self):
        for tool in (["gdb", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex", "run", "--args"], ["strace", "-f", "-o", "/dev/null"]):
            with self.subTest(tool[0]):
                job = self.start([MPIEXEC, "-n", "2", *tool, "{program}", "{folder}"])
                job.ranks()
                self.ends_with(job, 0)
                self.assertEqual((job.said(), job.findings()), ([], []), job.output())


if __name__ == "__main__":
    if TOOLS:
        print("not installed: " + ", ".join(TOOLS))
        sys.exit(SKIPPED)
    unittest.main()
