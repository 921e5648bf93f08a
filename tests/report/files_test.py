#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride report` with reports of MPI time: one, two, and files that are not reports."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from sample_report import sample_report  # noqa: E402  pylint: disable=wrong-import-position

COMMAND = os.environ["COMMAND_UNDER_TEST"]


class FilesTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-report-")
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return path

    def good(self, *paths):
        done = subprocess.run([COMMAND, "report", *paths], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLessEqual(len(done.stdout.splitlines()), 40)
        return done.stdout

    def refused(self, *paths):
        done = subprocess.run([COMMAND, "report", *paths], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1))
        return done.stderr

    def test_the_text_of_a_report(self):
        text = self.good(self.write("a.report.json", sample_report(4)))
        self.assertIn("MPI time of job sample: 4 ranks on node0, 12.5 s, solver\n", text)
        self.assertIn("least 8 % (rank 1, 1.00 s), most 29 % (rank 3, 3.60 s)\n", text)
        self.assertIn("in the last 300 collective calls: 80 % of their time was before the last member entered\n", text)
        self.assertRegex(text, r"\nMPI_Allreduce +solve \(solver.f90:88\) +4.00 k  4.00 MiB +6.60 s +60 % +50.0 ms +0.25 +3 +one node\n")
        self.assertRegex(text, r"\nMPI_Sendrecv +exchange_halo .* pack, MPI +1.50 s\n")
        self.assertRegex(text, r"\nMPI_Bcast +read_mesh .* 3\n")

    def test_a_report_of_a_release_that_did_not_say_how_calls_were_served(self):
        report = sample_report(4)
        for site in report["sites"]:
            del site["served"], site["saved_seconds"]
        text = self.good(self.write("a.report.json", report))
        self.assertRegex(text, r" COV +most\n")

    def test_a_long_report_has_at_most_40_lines(self):
        report = sample_report(4)
        sites = [{**report["sites"][0], "place": f"function{i}"} for i in range(60)]
        findings = [{"kind": "crash", "text": "t", "advice": "a", "since": 0.0, "found": 0.0, "ended": 0.0, "culprits": [], "evidence": []}] * 9
        text = self.good(self.write("a.report.json", {**report, "sites": sites, "findings": findings, "notes": ["note"] * 30}))
        self.assertIn("and 40 more places with", text)

    def test_a_report_without_ranks_or_calls(self):
        empty = dict(sample_report(1), ranks=[], sites=[], functions=[], pairs=[], communicators=[], notes=["no record"])
        text = self.good(self.write("a.report.json", empty))
        self.assertIn("no rank has a readable record; was the preload library loaded?", text)
        self.assertIn("note: no record\n", text)

    def test_two_reports_are_compared_biggest_change_first(self):
        slower = sample_report(4, scale=2.0)
        slower["sites"].append({**slower["sites"][2], "function": "MPI_Barrier", "place": "write (io.f90:3)", "seconds": 30.0})
        text = self.good(self.write("a.report.json", sample_report(4)), self.write("b.report.json", slower))
        self.assertIn("  in MPI (mean of the ranks): 22 % -> 44 %\n", text)
        self.assertIn("  MPI time (all ranks): 11.0 s -> 22.0 s (+11.0 s)\n", text)
        rows = [line.split()[0] for line in text.splitlines() if line.startswith("MPI_")]
        self.assertEqual(rows, ["MPI_Barrier", "MPI_Allreduce", "MPI_Sendrecv", "MPI_Bcast"])
        self.assertRegex(text, r"\nMPI_Barrier +write \(io.f90:3\) +0 +4.00 k +0 s +30.0 s +\+30.0 s\n")

    def test_files_that_cant_be_used(self):
        good = self.write("a.report.json", sample_report(1))
        newer = self.write("b.report.json", sample_report(1, version=2))
        self.assertIn("it is a report of version 2, this command reads 1; use the bestride that wrote it", self.refused(newer))
        damaged = self.write("c.report.json", dict(sample_report(1), ranks="none"))
        self.assertIn("it is damaged: a field is missing or of another type; run the job again", self.refused(damaged))
        other = self.write("d.json", {"format": "bestride-report", "version": 1})
        self.assertIn("some of the files are reports of MPI time and some are not", self.refused(good, other))
        self.assertIn("give one to print, or two to compare", self.refused(good, good, good))
        self.assertIn("is not a bestride report", self.refused(self.write("e.json", json.dumps(sample_report(1))[:100])))


if __name__ == "__main__":
    unittest.main()
