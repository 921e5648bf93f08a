#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What batch systems and people do to a watched job with signals: stop and continue, end, kill, close the terminal."""
import contextlib
import glob
import json
import os
import pty
import select
import signal
import termios
import time
import unittest

from followed_job import MPIEXEC, FollowedJobs, alive, eventually

STOPPED = 8  # seconds


class Stopped(FollowedJobs):
    """Rank 1 is blocked while processes are stopped; the time for which they are is none in which it does nothing."""

    def stop_and_continue(self, *jobs_and_pids):
        with contextlib.ExitStack() as stack:
            for job, _ in jobs_and_pids:
                stack.enter_context(job.blocked())
            time.sleep(1.2)  # until the watch has seen it
            for _, pids in jobs_and_pids:
                for pid in pids:
                    os.kill(pid, signal.SIGSTOP)
            time.sleep(STOPPED)
            for _, pids in jobs_and_pids:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)
            time.sleep(1.2)

    def test_stop_and_continue(self):
        all_of_it, ranks_only, all_below, watch_only = jobs = [self.start() for _ in range(4)]
        ranks = [job.ranks() for job in jobs]
        self.stop_and_continue((all_of_it, [all_of_it.pid, *all_of_it.processes()]), (ranks_only, ranks[1]), (all_below, list(all_below.processes())),
                               (watch_only, [watch_only.pid]))
        for job in (all_of_it, watch_only):
            self.assertEqual(job.findings(), [], job.output())
        for job in (ranks_only, all_below):
            self.assertTrue(eventually(lambda job=job: job.findings() and all("ended" in each for each in job.findings())), job.output())
            self.assertEqual([(each["class"], each["culprits"]) for each in job.findings()], [("stopped", [0, 1])], job.output())
            self.assertEqual(sum("the job goes on" in line for line in job.said()), 1, job.output())
        for job in (all_of_it, all_below):
            finding, began = self.finds_a_hang(job)
            # `since` is a time of this machine, though the watch was stopped.
            since = finding["since"] + self.started(job)
            self.assertLess(abs(since - began), 3, job.output())
        for job, code in ((ranks_only, 0), (watch_only, 3)):
            self.ends_with(job, code)

    @staticmethod
    def started(job):
        with open(glob.glob(job.path("*.verdict.json"))[0], encoding="utf-8") as file:
            return json.load(file)["started"]


class Ended(FollowedJobs):
    def no_verdict(self, job):
        self.assertEqual((job.findings(), [line for line in job.said() if "crash" in line]), ([], []), job.output())

    def nothing_stays(self, job, pids, records):
        self.assertTrue(eventually(lambda: not any(map(alive, pids))), job.output())
        self.assertTrue(eventually(lambda: not any(map(os.path.exists, records))), records)

    def test_the_launcher_is_killed(self):
        job = self.start()
        records, pids = list(job.records().values()) if job.ranks() else [], job.processes()
        os.kill(job.launcher(), signal.SIGKILL)
        self.assertEqual(job.wait(), 128 + signal.SIGKILL)
        self.no_verdict(job)
        self.assertRegex(job.output(), r"bestride: the launcher \(pid \d+\) was killed by signal 9 \(Killed\), and its ranks have ended with it\n")
        self.nothing_stays(job, pids, records)

    def test_the_launcher_is_told_to_end(self):
        """It passes the signal on to its ranks, which do not end at the same time."""
        job = self.start()
        job.ranks()
        os.kill(job.launcher(), signal.SIGTERM)
        job.wait()
        self.no_verdict(job)
        self.assertIn("bestride: the job was ended by signal 15 (Terminated), which all its ranks got: no rank is at fault\n", job.output())

    def test_the_launcher_is_killed_after_a_rank_has_crashed(self):
        """A fault of a rank is not hidden."""
        job = self.start(["sh", "-c", "%s -n 2 {program} {folder}; kill -KILL $$" % MPIEXEC])
        job.ranks()
        job.tell("crash")
        self.assertEqual(job.wait(), 128 + signal.SIGKILL)
        self.assertEqual([(each["class"], each["culprits"]) for each in job.findings()], [("crash", [1])], job.output())

    def test_a_launcher_that_leaves_its_ranks(self):
        """A job script is killed; what it has started goes on, and its records go with it."""
        job = self.start(["sh", "-c", "%s -n 2 {program} {folder}; true" % MPIEXEC])
        ranks = job.ranks()
        records, pids = list(job.records().values()), job.processes()
        script = next(pid for pid, name in pids.items() if name == "sh")
        os.kill(script, signal.SIGKILL)
        self.assertEqual(job.wait(), 128 + signal.SIGKILL)
        self.assertIn("; its ranks go on and are not watched any more\n", job.output())
        self.no_verdict(job)
        self.assertTrue(all(map(alive, ranks)))
        job.tell("end 0")
        self.nothing_stays(job, pids, records)

    def test_the_watch_is_killed(self):
        job = self.start()
        job.ranks()
        records, pids = list(job.records().values()), job.processes()
        job.process.kill()
        job.process.wait()
        time.sleep(1)
        self.assertTrue(all(map(alive, pids)))
        job.tell("end 0")
        self.nothing_stays(job, pids, records)
        self.assertEqual(job.output(), "")

    def test_the_proxy_is_killed(self):
        """The launcher ends, or waits for the end of the ranks, which are not its children."""
        job = self.start()
        ranks = job.ranks()
        proxy = next(pid for pid, name in job.processes().items() if name == "hydra_pmi_proxy")
        os.kill(proxy, signal.SIGKILL)
        if eventually(lambda: job.process.poll() is not None, 5):
            self.assertRegex(job.output(), r"bestride: the launcher \(pid \d+\) has ended; its ranks go on and are not watched any more\n")
        self.assertTrue(all(map(alive, ranks)))
        for pid in ranks:
            os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(job.wait(), 0)

    def test_a_batch_system_ends_it(self):
        """SIGTERM, and SIGKILL for what is left some seconds later."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            with self.subTest(number.name):
                job = self.start()
                job.ranks()
                job.tell("ignore")
                job.until_told()
                pids = job.processes()
                os.kill(job.pid, number)
                if not eventually(lambda job=job: job.process.poll() is not None, 5):
                    for pid in [job.pid, *pids]:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, signal.SIGKILL)
                job.wait()
                self.no_verdict(job)
                self.nothing_stays(job, pids, [])

    def test_other_signals_are_passed_on_and_do_not_end_it(self):
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGXCPU, signal.SIGRTMIN + 3):
            with self.subTest(signal.Signals(number).name if number < signal.SIGRTMIN else number):
                job = self.start(["sh", "-c", "trap 'echo got it' %d; %s -n 2 {program} {folder} & while ! wait $!; do :; done" % (number, MPIEXEC)])
                job.ranks()
                os.kill(job.pid, number)
                self.assertTrue(eventually(lambda job=job: "got it\n" in job.output()), job.output())
                self.ends_with(job, 0)
                self.assertEqual(job.said(), [], job.output())


class Terminal(FollowedJobs):
    """On a pseudo-terminal."""

    def start_on_terminal(self, as_leader):
        """Returns the job and the other end of its terminal. `as_leader`: the watch itself leads the session."""
        ends = []

        def start(words):
            pid, end = pty.fork()
            if pid == 0:
                os.execv(words[0], words) if as_leader else os.execv("/bin/sh", ["sh", "-c", " ".join(words) + "; true"])  # pylint: disable=expression-not-assigned
            ends.append(end)
            return pid
        job = self.start(start=start)
        self.addCleanup(self.reap, job.pid)
        job.ranks()
        return job, ends[0]

    @staticmethod
    def reap(pid):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    @staticmethod
    def read(end, seconds):
        """What is written on the terminal until nothing has it open any more, or for so many seconds."""
        text, until = b"", time.monotonic() + seconds
        while time.monotonic() < until:
            if select.select([end], [], [], 0.1)[0]:
                try:
                    part = os.read(end, 4096)
                except OSError:  # closed by all processes
                    break
                text += part
        return text.decode(errors="replace")

    def test_keys(self):
        for keys in (b"\x03", b"\x03\x03", b"\x1c"):
            with self.subTest(keys):
                job, end = self.start_on_terminal(False)
                pids, before = job.processes(), termios.tcgetattr(end)
                for i in range(len(keys)):
                    os.write(end, keys[i:i + 1])
                    time.sleep(0.3)
                output = self.read(end, 20)
                self.assertTrue(eventually(lambda pids=pids: not any(map(alive, pids))), output)
                self.assertNotIn("bestride:", output)
                self.assertEqual(job.findings(), [])
                self.assertEqual(termios.tcgetattr(end), before)
                os.close(end)

    def test_the_terminal_is_closed(self):
        for as_leader in (False, True):
            with self.subTest(as_leader=as_leader):
                job, end = self.start_on_terminal(as_leader)
                pids = job.processes()
                os.close(end)
                self.assertTrue(eventually(lambda pids=pids: not any(map(alive, pids)), 20), "the job goes on without its terminal")
                self.assertEqual(job.findings(), [])


if __name__ == "__main__":
    unittest.main()
