#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_cases.py, with a launcher and a program that act by the names of the cases: no failure is missed, and each is named."""
import os
import subprocess
import sys
import tempfile
import unittest

LAUNCHER = """#!/bin/sh
shift 2
while [ "$1" = -genv ]; do export "$2=$3"; shift 3; done
exec "$@"
"""
PROGRAM = """#!/bin/sh
if [ "$1" = --list ]; then printf '%s\\n' CASES; exit; fi
shift
status=0 before=
for case; do
  echo "$case" >> RUNS
  case $case in
    crash) kill -SEGV $$ ;;
    hang) exec sleep 30 ;;
    wrong) echo "FAILED $case: 1 checks"; status=1 ;;
    only_first) if [ "$before" ]; then echo "FAILED $case: 1 checks"; status=1; else echo "passed $case"; fi ;;
    silent) ;;
    *) echo "passed $case" ;;
  esac
  before=yes
done
if [ "$case" = end ] && [ "$#" -gt 1 ]; then exit 3; fi
exit $status
"""


class RunCases(unittest.TestCase):
    def run_cases(self, *cases, only=(), environment=None):
        """Status, the failures named at the end, and the cases in the order in which they ran."""
        with tempfile.TemporaryDirectory() as folder:
            def script(name, text):
                path = os.path.join(folder, name)
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, 0o700)
                return path
            runs = os.path.join(folder, "runs")
            program = script("program", PROGRAM.replace("CASES", " ".join(f"'{case}'" for case in cases)).replace("RUNS", runs))
            ran = subprocess.run([sys.executable, "-B", os.path.join(os.path.dirname(__file__), "run_cases.py"), "--mpiexec", script("mpiexec", LAUNCHER),
                                  "--ranks", "2", "--set", "SETTING=1", "--limit", "1", program, *only],
                                 env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            with open(runs, encoding="utf-8") as file:
                return ran.returncode, ran.stdout.partition(" failures\n")[2].splitlines(), file.read().split()

    def test_all_pass_in_one_job(self):
        self.assertEqual(self.run_cases("a", "b", "c"), (0, [], ["a", "b", "c"]))

    def test_a_wrong_case_runs_again_alone(self):
        status, verdicts, ran = self.run_cases("a", "wrong", "b")
        self.assertEqual((status, ran), (1, ["a", "wrong", "b", "wrong"]))
        self.assertEqual(verdicts, ["FAILED wrong: ended with status 1"])

    def test_the_cases_after_a_crash_or_a_hang_run(self):
        for case in ("crash", "hang"):
            status, verdicts, ran = self.run_cases("a", case, "b", "c")
            self.assertEqual((status, ran), (1, ["a", case, case, "b", "c"]))
            self.assertEqual(len(verdicts), 1)
            self.assertIn(f"FAILED {case}: ", verdicts[0])

    def test_a_case_that_fails_only_after_others(self):
        status, verdicts, _ = self.run_cases("a", "only_first", "b")
        self.assertEqual(status, 1)
        self.assertIn("FAILED only_first in the common job, after other cases", verdicts[0])

    def test_a_case_without_a_result(self):
        for listed in ("silent", "silent alone"):
            self.assertEqual(self.run_cases("a", listed)[:2], (1, ["FAILED silent: a case has no result"]))

    def test_the_end_of_the_job_fails(self):
        status, verdicts, _ = self.run_cases("a", "end")
        self.assertEqual((status, verdicts), (1, ["FAILED the end of the common job, after all cases had passed: ended with status 3"]))

    def test_jobs_of_their_own(self):
        self.assertEqual(self.run_cases("a", "only_first alone", "b"), (0, [], ["a", "b", "only_first"]))
        self.assertEqual(self.run_cases("a", "only_first", environment={"TEST_ALONE": "1"})[0], 0)

    def test_named_cases(self):
        self.assertEqual(self.run_cases("a", "wrong", "b", only=("a", "b")), (0, [], ["a", "b"]))


if __name__ == "__main__":
    unittest.main()
