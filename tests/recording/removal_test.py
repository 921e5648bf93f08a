#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""removal_test.py MPIEXEC LIBRARY FAULT_LAB BESTRIDE: which records of a job remain: none after a normal end, all after a kill."""
import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import time
import unittest

MPIEXEC, LIBRARY, PROGRAM, COMMAND = sys.argv[1:5]
FOLDER = f"/dev/shm/bestride-{os.geteuid()}"


class Removal(unittest.TestCase):
    def start(self, *arguments, **environment):
        command = [MPIEXEC, "-n", "2", "-genv", "LD_PRELOAD", LIBRARY]
        for name, value in environment.items():
            command += ["-genv", name, value]
        return subprocess.Popen([*command, PROGRAM, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def records_of(self, launch):
        """The records of ranks that descend from this launch, by path; of running ranks."""
        found = {}
        for path in glob.glob(f"{FOLDER}/*/*.record"):
            pid = int(os.path.basename(path).split(".")[0])
            at = pid
            while at > 1:
                try:
                    with open(f"/proc/{at}/stat", encoding="utf-8", errors="replace") as file:
                        at = int(file.read().rpartition(")")[2].split()[1])
                except OSError:
                    break
                if at == launch.pid:
                    found[path] = pid
        return found

    def wait_for_records(self, launch):
        for _ in range(1500):
            records = self.records_of(launch)
            if len(records) == 2:
                return records
            time.sleep(0.02)
        self.fail("two records did not appear")

    def test_nothing_is_left_after_a_normal_end(self):
        launch = self.start("--fault", "none", "--steps", "40", "--work-us", "20000", "--limit", "60", BESTRIDE_RECORD="on")
        records = self.wait_for_records(launch)
        launch.communicate(timeout=120)
        self.assertEqual(launch.returncode, 0)
        for path in records:
            self.assertFalse(os.path.exists(path), path)
            self.assertFalse(os.path.exists(os.path.dirname(path)))

    def test_nothing_is_created_without_the_variable(self):
        launch = self.start("--fault", "none", "--steps", "10", "--limit", "60", BESTRIDE_RECORD="off")
        seen = {}
        while launch.poll() is None:
            seen.update(self.records_of(launch))
            time.sleep(0.02)
        launch.communicate()
        self.assertEqual(seen, {})

    def test_where_says_with_which_code_a_rank_exited(self):
        launch = self.start("--fault", "exit_3", "--fault-rank", "1", "--fault-step", "20", "--work-us", "20000", "--limit", "60", BESTRIDE_RECORD="on")
        records = self.wait_for_records(launch)
        launch.communicate(timeout=120)
        job = os.path.basename(os.path.dirname(next(iter(records))))
        text = subprocess.run([COMMAND, "where", job], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertRegex(text, r"rank 1 .*gone \(exited with code 3 before MPI_Finalize\)")
        for path in records:
            os.remove(path)
        os.rmdir(os.path.dirname(path))

    def test_where_names_the_rank_that_was_stopped(self):
        """Rank 1 is stopped by a signal; the other waits for it. Then the job is killed: the records remain."""
        launch = self.start("--fault", "sigstop", "--fault-rank", "1", "--fault-step", "2", "--limit", "40", BESTRIDE_RECORD="on")
        records = self.wait_for_records(launch)
        job = os.path.basename(os.path.dirname(next(iter(records))))
        text = ""
        for _ in range(100):
            text = subprocess.run([COMMAND, "where", job], capture_output=True, text=True, timeout=60, check=False).stdout
            if "stopped (T)" in text and "holds up" in text:
                break
            time.sleep(0.2)
        self.assertRegex(text, r"rank 1 holds up rank 0: .*stopped \(T\)")
        machine = json.loads(subprocess.run([COMMAND, "where", job, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout)
        self.assertEqual(machine["jobs"][0]["culprits"], [1])
        for pid in records.values():
            with contextlib.suppress(ProcessLookupError):  # the launcher has ended it because the first one was killed
                os.kill(pid, signal.SIGKILL)
        launch.communicate(timeout=60)
        for path in records:
            self.assertTrue(os.path.exists(path), path)
        text = subprocess.run([COMMAND, "where", job], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertIn("gone", text)
        for path in records:
            os.remove(path)
        os.rmdir(os.path.dirname(path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
