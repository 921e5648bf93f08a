#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride try` with shell scripts in place of jobs. The environment is that of output_test.py."""
import glob
import json
import os
import re
import signal
import subprocess
import time
import unittest

from output_test import PROGRAM, CommandTest


class Try(CommandTest):
    def setUp(self):
        super().setUp()
        self.environment["TMPDIR"] = f"{self.prefix}/home"

    def job(self, script):
        """In place of an MPI program: the library adds a byte to the file that BESTRIDE_MARK names."""
        self.write("path/job", "#!/bin/sh\nwith=no\ncase $LD_PRELOAD in *libbestride.so*) with=yes; printf 1 >> \"$BESTRIDE_MARK\";; esac\n" + script + "\n",
                   0o755)

    def left(self):
        return [name for name in os.listdir(f"{self.prefix}/home") if name.startswith("bestride-try-")]

    def test_equal_jobs(self):
        self.job("echo rank 0; echo $1")
        text = self.good("try", "job", "--rounds")
        self.assertEqual(len(re.findall(r"(?m)^ +[1-6] +\S+ m?s +\S+ m?s +[0-9.]+$", text)), 6, text)
        self.assertRegex(text, r"\nratio   [0-9.]+, quartiles [0-9.]+ to [0-9.]+: .*\noutput  the same in all runs\n\Z")
        self.assertEqual(self.left(), [])

    def test_a_faster_job(self):
        self.job("[ $with = yes ] || sleep 0.2")
        text = self.good("try", "--json", f"{self.prefix}/try.json", "--", "job", "a b")
        self.assertRegex(text, r"times as fast with Bestride, beyond the noise \(p = 0.031\)")
        with open(f"{self.prefix}/try.json", encoding="utf-8") as file:
            found = json.load(file)
        self.assertEqual((found["schema"], found["command"], found["verdict"], found["output"]), ("bestride-try/1", ["job", "a b"], "faster", "same"))
        self.assertEqual(len(found["rounds"]), 6)
        self.assertTrue(all(one["plain"] > one["bestride"] + 0.1 for one in found["rounds"]))

    def test_a_slower_job(self):
        self.job("[ $with = no ] || sleep 0.2")
        self.assertIn(": slower with Bestride: ", self.good("try", "job"))

    def test_few_rounds_tell_nothing(self):
        self.job("[ $with = yes ] || sleep 0.1")
        self.assertIn("2 rounds are too few to tell a difference from noise (6 are needed)", self.good("try", "--rounds", "2", "job"))
        self.assertIn("\n    2 ", self.good("try", "--rounds=2", "job"))
        self.job("sleep 0.4")
        self.assertIn(": 1 rounds are too few", self.good("try", "--seconds", "1", "job"))

    def test_output_that_differs(self):
        self.job("echo same; echo $with")
        done = self.run_command("try", "--rounds", "2", "job")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn("output  DIFFERS with Bestride in round 1\n  without: no\n  with:    yes\nfiles   ", done.stdout)
        folder = re.search(r"files   (\S+)", done.stdout).group(1)
        self.assertEqual(sorted(os.listdir(folder)), sorted(f"{n}.{kind}.{end}" for n in (1, 2) for kind in ("plain", "bestride") for end in ("out", "err")))
        with open(f"{folder}/2.bestride.out", encoding="utf-8") as file:
            self.assertEqual(file.read(), "same\nyes\n")

    def test_output_that_varies_anyway(self):
        self.job("date +%s.%N")
        self.assertIn("output  the same but for numbers, which differ between plain runs, too\n", self.good("try", "--rounds", "2", "job"))
        self.job("mktemp -u abcXXXXXXXXXX | tr 0-9 a-j")
        self.assertIn("output  differs between plain runs: not compared\n", self.good("try", "--rounds", "2", "job"))

    def test_each_kind_goes_first_in_turn(self):
        self.job(f"echo $with >> {self.prefix}/order")
        self.good("try", "--rounds", "4", "job")
        with open(f"{self.prefix}/order", encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["no", "yes", "yes", "no", "no", "yes", "yes", "no"])

    def test_what_was_preloaded_stays(self):
        self.job("echo $LD_PRELOAD")
        done = self.run_command("try", "--rounds", "1", "--keep", f"{self.prefix}/kept", "job", LD_PRELOAD=f"{self.front}:libm.so.6")
        self.assertIn("  without: libm.so.6\n", done.stdout)
        self.assertTrue(os.path.exists(f"{self.prefix}/kept/1.plain.out"))

    def test_a_job_that_fails(self):
        self.job("echo cause >&2; exit 3")
        done = self.run_command("try", "job")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Acause\nbestride: the job failed with exit code 3 without the library \(round 1\); its output is in \S+\n\Z")
        self.job("[ $with = no ] || kill -9 $$")
        done = self.run_command("try", "job")
        self.assertEqual(done.returncode, 1)
        self.assertIn("exit code 137 with the library (round 1), and not without it; its output is in ", done.stderr)

    def test_a_library_that_was_not_preloaded(self):
        line = "[ $with = no ] || echo \"ERROR: ld.so: object '/x/{}' from LD_PRELOAD cannot be preloaded: ignored.\" >&2"
        self.job(line.format("libbestride.so"))
        self.assertIn("would be compared with itself; 'bestride doctor' says why", self.run_command("try", "job").stderr)
        self.job(line.format("libother.so"))
        self.assertEqual(self.good("try", "--rounds", "1", "job").count("ratio"), 2)

    def test_a_job_that_would_be_compared_with_itself(self):
        self.job("true")
        self.assertEqual(self.refused("try", "job", BESTRIDE_DISABLE="1"),
                         "BESTRIDE_DISABLE=1 leaves every call to the MPI library, so the job would be compared with itself; unset it")

    def assert_compared_with_itself(self, done):
        self.assertEqual((done.returncode, done.stdout), (2, "round       plain    Bestride   ratio\n"), done.stderr)
        self.assertRegex(done.stderr, r"\Abestride: no MPI call of the job reached the library, so the job would be compared with itself: [^\n]+; 'bestride "
                         r"doctor PROGRAM' checks the program, [^\n]+\n\Z")
        self.assertEqual(glob.glob(f"{self.prefix}/home/.bestride-try-*") + self.left(), [])

    def test_a_job_that_the_library_does_not_reach(self):
        self.assert_compared_with_itself(self.run_command("try", "--json", f"{self.prefix}/try.json", "true"))
        self.assertFalse(os.path.exists(f"{self.prefix}/try.json"))
        self.write("path/script", "#!/bin/sh\nunset LD_PRELOAD BESTRIDE_MARK\nexec job\n", 0o755)
        self.job("true")
        self.assert_compared_with_itself(self.run_command("try", "script"))

    @unittest.skipUnless(PROGRAM["MPI_PROGRAM"], "no MPICH here")
    def test_an_mpi_program(self):
        """A real one, of one rank, with the library of the build."""
        self.write("path/bare", f"#!/bin/sh\nunset LD_PRELOAD\nexec {PROGRAM['MPI_PROGRAM']}\n", 0o755)
        self.write("path/silent", f"#!/bin/sh\nexec {PROGRAM['MPI_PROGRAM']} > {self.prefix}/log 2>&1\n", 0o755)
        for command in (["bare"], ["silent"], [PROGRAM["MPI_PROGRAM"]]):
            done = subprocess.run([os.environ["COMMAND_UNDER_TEST"], "try", "--rounds", "1", *command], env=self.environment, cwd=f"{self.prefix}/home",
                                  text=True, capture_output=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
            if command == ["bare"]:
                self.assert_compared_with_itself(done)
            else:
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("\nratio   ", done.stdout)

    def test_what_the_library_says_is_shown_once(self):
        self.job("[ $with = no ] || for rank in 0 1; do echo 'bestride: nothing is accelerated' >&2; done; echo other >&2")
        done = self.run_command("try", "--rounds", "2", "job")
        self.assertEqual((done.returncode, done.stderr), (0, "bestride: nothing is accelerated\n"))

    def test_bad_usage(self):
        self.assertIn("for example: bestride try mpiexec", self.refused("try"))
        self.assertIn("there is no such program", self.refused("try", "absent-program", code=127))
        self.assertIn("you have no permission to execute it", self.refused("try", self.write("data", ""), code=126))
        self.assertIn("--rounds: '21' is not a whole number from 1 to 20", self.refused("try", "--rounds", "21", "job"))
        self.job("true")
        self.assertIn("give --keep another", self.run_command("try", "--keep", "/proc/none", "job").stderr)
        done = self.run_command("try", "--rounds", "1", "--json", "/proc/none", "job")
        self.assertIn("give --json another path", done.stderr)
        self.assertEqual(done.stdout, "", "no run was begun")
        self.assertIn("No such file", self.refused("try", "--profile", "/nowhere", "job"))
        damaged = self.write("damaged.json", "{")
        self.assertIn("damaged or cut short", self.refused("try", "--profile", damaged, "job"))

    def test_a_signal_ends_the_job_and_the_command(self):
        self.job(f"trap 'echo ended > {self.prefix}/ended; exit 7' TERM; echo $$ > {self.prefix}/begun; sleep 10 & wait")
        with subprocess.Popen([f"{self.prefix}/bin/bestride", "try", "job"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as started:
            while not os.path.exists(f"{self.prefix}/begun"):
                time.sleep(0.01)
            time.sleep(0.1)
            started.send_signal(signal.SIGTERM)
            self.assertEqual(started.wait(20), 7)
        self.assertTrue(os.path.exists(f"{self.prefix}/ended"))
        self.assertEqual(self.left(), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)
