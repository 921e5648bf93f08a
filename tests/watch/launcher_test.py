#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --watch` as a launcher's parent: exit codes, signals, input, and what it does after a verdict."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LAB = os.environ["FAULT_LAB"]
MPIEXEC = os.environ["MPIEXEC"]


class LauncherTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-watch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def words(self, *options):
        return [COMMAND, "run", "--watch", "--verdict-folder", self.folder, *options]

    def run_watch(self, command, *options, **more):
        return subprocess.run(self.words(*options) + ["--", *command], text=True, capture_output=True, timeout=120, check=False, **more)

    def fault(self, kind, *options, ranks=2, limit=60):
        return self.run_watch([MPIEXEC, "-n", str(ranks), LAB, "--fault", kind, "--fault-rank", "1", "--fault-step", "3", "--steps", "10",
                               "--work-us", "100", "--limit", str(limit)], *options)

    def initialized_ranks(self):
        """How many ranks with the test's folder as working directory have returned from MPI_Init."""
        jobs = json.loads(subprocess.run([COMMAND, "where", "--json"], text=True, capture_output=True, check=True).stdout)["jobs"]
        number = 0
        for rank in (rank for job in jobs for rank in job["ranks"] if rank["alive"] and rank["state"] == "initialized"):
            with contextlib.suppress(OSError):
                number += os.readlink(f"/proc/{rank['pid']}/cwd") == self.folder
        return number

    def verdicts(self):
        return [os.path.join(self.folder, name) for name in sorted(os.listdir(self.folder)) if name.endswith(".json")]

    def test_exit_codes_and_output_are_the_launcher_s(self):
        done = self.run_watch(["sh", "-c", "cat; echo error >&2; exit 7"], input="text")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "text", "error\n"))
        self.assertEqual(self.run_watch(["sh", "-c", "kill -9 $$"]).returncode, 137)
        self.assertEqual(self.run_watch(["sh", "-c", "exit 0"]).returncode, 0)
        self.assertEqual(self.verdicts(), [])

    def test_a_launcher_that_does_not_exist(self):
        done = self.run_watch(["no-such-launcher"])
        self.assertEqual(done.returncode, 127)
        self.assertRegex(done.stderr, r"\Abestride: can't run 'no-such-launcher': .*\n\Z")

    def test_a_launcher_that_is_no_program(self):
        path = os.path.join(self.folder, "job.sh")
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n")
        for name, cause in ((path, "no permission to execute it"), (self.folder, "it is a folder")):
            done = self.run_watch([name])
            self.assertEqual(done.returncode, 126)
            self.assertRegex(done.stderr, rf"\Abestride: can't run '{name}': .*{cause}.*\n\Z")

        for content, cause in (("#!/no/such/shell\n", "the interpreter that it names is not there"), ("echo\n", "begins with '#!'")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(content)
            os.chmod(path, 0o755)
            done = self.run_watch([path])
            self.assertEqual(done.returncode, 126)
            self.assertRegex(done.stderr, rf"\Abestride: can't run '{path}': .*{cause}.*\n\Z")

    def test_a_job_without_a_rank(self):
        for program, code in (("/bin/false", 1), ("/bin/true", 0)):
            done = self.run_watch([MPIEXEC, "-n", "2", program])
            self.assertEqual(done.returncode, code)
            lines = [line for line in done.stderr.splitlines() if line.startswith("bestride: ")]
            self.assertEqual(len(lines), 1, done.stderr)
            self.assertRegex(lines[0], r"\Abestride: no rank was watched: .*bestride doctor PROGRAM")
            self.assertEqual("the launcher has ended with code 1, so a process may have ended before that" in lines[0], code == 1, lines[0])

    def rank_before_init(self, does, *options):
        """Rank 1 does something before the others, which are in MPI_Init, see it."""
        return self.run_watch([MPIEXEC, "-n", "3", "sh", "-c", f'[ "$PMI_RANK" != 1 ] || {{ {does}; }}; exec {LAB} --steps 10 --work-us 100'], *options)

    def test_a_rank_that_ends_before_mpi_init(self):
        """The launcher waits for it."""
        done = self.rank_before_init("exit 3", "--on-fault", "abort")
        self.assertRegex(done.stderr, r"(?m)^bestride: crash: rank 1 ended before MPI_Init, in which the others are$")
        self.assertIn("3 ranks wait in MPI_Init", done.stderr)
        with open(self.verdicts()[0], encoding="utf-8") as file:
            finding = json.load(file)["findings"][0]
        self.assertEqual((finding["class"], finding["cause"], finding["culprits"], finding["held_up"]), ("crash", "starting", [1], [0, 2]))
        self.assertEqual(finding["confidence"], 0.9)

    def test_a_rank_that_comes_late_to_mpi_init(self):
        done = self.rank_before_init("sleep 6")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"(?m)^bestride: rank 1 \(pid \d+ on [^ ]+\) has not called MPI_Init for .* while ranks 0,2 wait; this may be its work$")
        self.assertEqual(self.verdicts(), [])

    def test_a_signal_is_passed_on_and_is_no_fault(self):
        process = subprocess.Popen(self.words() + ["--", MPIEXEC, "-n", "2", LAB, "--steps", "1000000", "--limit", "60"],  # pylint: disable=consider-using-with
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(2)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        self.assertNotIn("bestride: crash", output)
        self.assertEqual(self.verdicts(), [])

    def test_an_interrupt_of_the_launcher_is_no_fault(self):
        """The launcher passes it on to the ranks; neither `bestride run` nor an agent that works alone has got it."""
        preload = subprocess.run([COMMAND, "run", "--dry-run", "--", "true"], text=True, capture_output=True, check=True).stdout.splitlines()[0]
        job = [MPIEXEC, "-n", "3", LAB, "--steps", "1000000", "--limit", "60"]
        for words in (["env", "BESTRIDE_WATCH=1", preload, *job], self.words() + ["--", *job]):
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder) as process:
                until = time.monotonic() + 60
                while self.initialized_ranks() < 3 and time.monotonic() < until:
                    time.sleep(0.05)
                launcher = process.pid if words[0] == "env" else int(
                    subprocess.run(["pgrep", "-P", str(process.pid)], text=True, capture_output=True, check=True).stdout.split()[0])
                os.kill(launcher, signal.SIGINT)
                output, _ = process.communicate(timeout=60)
            self.assertNotIn("bestride: crash", output)
            self.assertLessEqual(output.count("bestride: "), 1, output)
            self.assertEqual(self.verdicts(), [])

    def test_records_that_are_switched_off(self):
        done = self.run_watch([MPIEXEC, "-n", "2", LAB, "--steps", "10"], env=os.environ | {"BESTRIDE_RECORD": "off"})
        self.assertEqual(done.returncode, 0)
        self.assertEqual([line for line in done.stderr.splitlines() if "bestride: " in line],
                         ["bestride: BESTRIDE_RECORD=off is overridden, because --watch, --report and --metrics read the ranks' records; to record "
                          "nothing, leave these options out"])

    def test_a_fault_does_not_end_because_the_job_is_told_to_end(self):
        process = subprocess.Popen(self.words() + ["--", MPIEXEC, "-n", "3", LAB, "--fault", "sigstop", "--fault-rank", "1", "--fault-step", "3",  # pylint: disable=consider-using-with
                                                   "--steps", "10", "--limit", "60"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        until = time.monotonic() + 60
        while not self.verdicts() and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
        self.assertNotIn("the job goes on", output)
        with open(self.verdicts()[0], encoding="utf-8") as file:
            findings = json.load(file)["findings"]
        self.assertEqual([(finding["class"], finding["culprits"], "ended" in finding) for finding in findings], [("stopped", [1], False)])

    def test_the_verdict_file(self):
        done = self.fault("sigkill")
        self.assertNotEqual(done.returncode, 0)
        # The launcher may have written half a line of its own before each.
        self.assertRegex(done.stderr, r"bestride: crash: rank 1 \(pid \d+ on \S+\) ")
        self.assertRegex(done.stderr, rf"(?m)  file: {self.folder}/bestride-hydra-\d+\.verdict\.json$")
        with open(self.verdicts()[0], encoding="utf-8") as file:
            verdict = json.load(file)
        self.assertEqual((verdict["format"], verdict["version"], verdict["launcher_exit_code"]), ("bestride-verdict", 1, done.returncode))
        finding = verdict["findings"][0]
        self.assertEqual((finding["class"], finding["cause"], finding["culprits"]), ("crash", "killed", [1]))
        self.assertRegex(finding["summary"], r"^Rank 0 was in MPI_\w+ at \S.*\.$")
        self.assertTrue(finding["next"] and all(set(step) == {"check", "command", "expected", "otherwise"} for step in finding["next"]))
        self.assertEqual([rank["rank"] for rank in verdict["job"]["ranks"]], [0, 1])
        # No record of the job remains.
        root = f"/dev/shm/bestride-{os.geteuid()}"
        self.assertFalse(os.path.isdir(root) and verdict["job"]["name"] in os.listdir(root))

    def test_abort_ends_a_deadlock(self):
        begun = time.monotonic()
        done = self.fault("cyclic_sends", "--on-fault", "abort")
        self.assertLess(time.monotonic() - begun, 55, "it would have run into its limit of 60 s")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("bestride: the job is ended because it can't go on", done.stderr)
        self.assertNotIn("bestride: crash", done.stderr)

    def test_a_command_gets_the_verdict(self):
        path = os.path.join(self.folder, "got")
        self.fault("sigkill", "--on-fault", f"cat > {path}")
        with open(path, encoding="utf-8") as file:
            self.assertEqual(json.load(file)["findings"][0]["class"], "crash")

    def test_the_command_starts_with_no_signal_blocked(self):
        # With exec: dash unblocks all signals when it forks.
        path = os.path.join(self.folder, "status")
        self.fault("sigkill", "--on-fault", f"exec grep -E 'Sig(Blk|Ign)' /proc/self/status > {path}")
        with open(path, encoding="utf-8") as file:
            masks = dict(line.split() for line in file)
        self.assertEqual(int(masks["SigBlk:"], 16), 0)
        self.assertEqual(int(masks["SigIgn:"], 16) & 1 << signal.SIGPIPE - 1, 0)

    def test_a_folder_that_can_not_be_written(self):
        done = self.run_watch(["true"], "--verdict-folder", "/no/such/folder")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Abestride: .*/no/such/folder")

    def test_two_jobs_of_one_script(self):
        lab = f"{MPIEXEC} -n 2 {LAB} --steps 10 --work-us 100 --fault-rank 1 --fault-step 3"
        done = self.run_watch(["sh", "-c", f"{lab} --fault none; {lab} --fault sigkill; {lab} --fault none"])
        self.assertEqual(done.returncode, 0)
        self.assertEqual(done.stderr.count("bestride: crash: rank 1"), 1)
        self.assertEqual(len(self.verdicts()), 1)


if __name__ == "__main__":
    unittest.main()
