#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every kind of fault_lab: how the job ends, the line of the fault, what is left behind.

Usage: fault_lab_test.py MPIEXEC FAULT_LAB PRELOAD CLASS, where PRELOAD is a library or an empty string
"""
import collections
import concurrent.futures
import glob
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

MPIEXEC, FAULT_LAB, PRELOAD = sys.argv[1:4]
LINE = re.compile(r"(fault|clean): (\w+) rank (\d+) step (\d+) phase (\w+) time (\d+\.\d{6})\n")
SHORT = ["--steps", "4", "--work-us", "200", "--checkpoint-every", "2", "--checkpoint-seconds", "0.1", "--pause-seconds", "0.2"]
# The limit of a job that hangs. On a busy machine a job may need more than a second to start; then it gets more.
LIMITS = (1, 4, 16)


def listed(*options, ranks=2):
    done = subprocess.run([FAULT_LAB, "--list", "--json", "--ranks", str(ranks), *options], capture_output=True, text=True, timeout=60,
                          check=True)
    return json.loads(done.stdout)["kinds"]


def processes_with(argument):
    """Ids of the processes that have this argument."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                if argument.encode() in file.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass  # it has ended
    return found


class Run:
    """One job: exit code, output, the lines of the log, and the processes that are left."""

    def __init__(self, *options, ranks=2, environment=()):
        with tempfile.TemporaryDirectory() as folder:
            log = os.path.join(folder, "log")
            launch = [MPIEXEC, "-n", str(ranks), *environment] if ranks else []
            self.started = time.time()
            done = subprocess.run([*launch, FAULT_LAB, *options, "--log", log], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=120, check=False)
            self.ended = time.time()
            self.code, self.out, self.err = done.returncode, done.stdout, done.stderr
            self.lines = []
            if os.path.exists(log):
                with open(log, encoding="utf-8") as file:
                    self.lines = file.readlines()
            until = time.time() + 5
            while (left := processes_with(log)) and time.time() < until:
                time.sleep(0.02)
            self.left = left


def run_kind(kind):
    return kind, Run("--fault", kind["kind"], *SHORT, "--limit", "30", ranks=max(2, kind["ranks"]))


def run_until_limit(kind):
    """A fault in step 0 on as few ranks as possible, repeated with a longer limit until it was reached."""
    for limit in LIMITS:
        done = Run("--fault", kind["kind"], *SHORT, "--fault-step", "0", "--limit", str(limit), ranks=kind["ranks"])
        if done.lines:
            break
    done.limit = limit
    return kind, done


class Kinds(unittest.TestCase):
    def each(self, function, kinds, jobs=2):
        """So many jobs at a time."""
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            yield from pool.map(function, kinds)

    def has_line(self, kind, done):
        self.assertEqual(len(done.lines), 1, done.err)
        match = LINE.fullmatch(done.lines[0])
        self.assertTrue(match, done.lines[0])
        word, name, rank, _, phase, seconds = match.groups()
        self.assertEqual((word, name, int(rank), phase), ("fault", kind["kind"], kind["rank"], kind["phase"]))
        self.assertTrue(done.started - 1 < float(seconds) < done.ended + 1)


class Clean(Kinds):
    def test_each(self):
        checksums = collections.defaultdict(set)  # by the number of ranks
        kinds = [kind for kind in listed() if kind["class"] == "clean"]
        self.assertGreaterEqual(len(kinds), 9)
        for kind, done in self.each(run_kind, kinds):
            with self.subTest(kind["kind"]):
                self.assertEqual((done.code, done.left, kind["culprits"]), (0, [], []), done.err)
                checksums[max(2, kind["ranks"])].add(done.out)
                self.assertFalse([line for line in done.lines if not line.startswith("clean: " + kind["kind"])])
                self.assertEqual(bool(done.lines), kind["kind"] != "none")
        checksums[2].add(Run(*SHORT, "--yield", "--imbalance", "50").out)
        checksums[3].add(Run(*SHORT, ranks=3).out)
        if PRELOAD:
            preloaded = Run(*SHORT, environment=["-genv", "LD_PRELOAD", PRELOAD])
            self.assertNotIn("cannot be preloaded", preloaded.err)
            checksums[2].add(preloaded.out)
        for ranks, found in checksums.items():
            self.assertEqual(len(found), 1, found)
            self.assertRegex(found.pop(), rf"^ok checksum [0-9a-f]{{16}} ranks {ranks} steps 4\n$")

    def test_the_data_depend_on_the_seed(self):
        one, other = (Run(*SHORT, "--seed", seed, "--bytes", "200000", ranks=None) for seed in "12")
        self.assertEqual((one.code, other.code), (0, 0), one.err + other.err)
        self.assertNotEqual(one.out, other.out)


class Slow(Kinds):
    def test_each(self):
        for kind, done in self.each(run_kind, [kind for kind in listed(*SHORT) if kind["class"] == "slow"]):
            with self.subTest(kind["kind"]):
                self.assertEqual((done.code, done.left, kind["culprits"]), (0, [], [kind["rank"]]), done.err)
                self.has_line(kind, done)

    def cost(self, *options):
        """CPU seconds and elapsed seconds of one rank that computes for 0.15 s."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        done = Run("--steps", "3", "--work-us", "50000", "--phases", "halo", "--fault-step", "0", *options, ranks=None)
        self.assertEqual(done.code, 0, done.err)
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, done.ended - done.started

    def test_slow_100_doubles_the_computation(self):
        self.assertGreater(self.cost("--fault", "slow_100")[0] - self.cost()[0], 0.07)

    def test_quota(self):
        for options in ([], ["--quota-timer"]):
            self.assertGreater(self.cost("--fault", "cpu_quota", "--quota", "20", *options)[1], 0.4)

    def test_no_control_group_is_left(self):
        folders = "/sys/fs/cgroup/**/fault_lab.*"
        before = set(glob.glob(folders, recursive=True))
        Run("--fault", "cpu_quota", *SHORT, "--fault-step", "0")
        # The rank is killed at its limit.
        Run("--fault", "cpu_quota", "--steps", "1000000", "--fault-step", "0", "--limit", "0.5", ranks=None)
        until = time.time() + 5
        while (left := set(glob.glob(folders, recursive=True)) - before) and time.time() < until:
            time.sleep(0.02)
        self.assertFalse(left)


class Crash(Kinds):
    def test_each(self):
        kinds = [kind for kind in listed(*SHORT) if kind["class"] == "crash"]
        self.assertGreaterEqual(len(kinds), 14)
        for kind, done in self.each(run_kind, kinds):
            with self.subTest(kind["kind"]):
                self.assertIn(kind["end"], ("signal", "exit"))
                # The launcher ends with the code of the rank that ended first, which it prints, or with the bits of that and of SIGKILL, by
                # which it ends the other one. The other one may lose its connection to the launcher before that and end with 1 (3 of 60 runs
                # on a busy machine), or by SIGPIPE.
                codes = {kind["code"], kind["code"] | signal.SIGKILL} if f"EXIT CODE: {kind['code']}\n" in done.out else {kind["code"]}
                if kind["end"] == "exit" and "EXIT CODE: 1\n" in done.out:
                    codes.add(1)
                if done.code == signal.SIGPIPE and "EXIT CODE: 13\n" in done.out:
                    codes.add(signal.SIGPIPE)
                self.assertIn(done.code, codes, done.out + done.err)
                self.assertEqual(done.left, [])
                self.assertNotIn("ok", done.out)
                self.has_line(kind, done)


class Hang(Kinds):
    def hang(self, kinds, jobs):
        for kind, done in self.each(run_until_limit, kinds, jobs):
            with self.subTest(kind["kind"]):
                self.has_line(kind, done)
                self.assertNotEqual(done.code, 0)
                self.assertNotIn("ok", done.out)
                self.assertGreater(done.ended - done.started, 0.9 * done.limit)
                self.assertLess(done.ended - done.started, done.limit + 10)
                self.assertEqual(done.left, [])

    def test_each(self):
        found = 0
        for ranks, jobs in ((1, 4), (2, 2), (3, 1)):
            kinds = [kind for kind in listed("--fault-step", "0", ranks=ranks) if (kind["end"], kind["ranks"]) == ("limit", ranks)]
            found += len(kinds)
            self.hang(kinds, jobs)
        self.assertGreaterEqual(found, 13)

    def test_stopped_without_launcher_and_faults_that_end(self):
        stopped = {"ranks": None, "options": ["--fault", "sigstop", *SHORT, "--fault-step", "0", "--limit", "1"]}
        ending = [{"options": ["--fault", kind, "--fault-seconds", "0.2", *SHORT]} for kind in ("sigstop", "spin", "sleep")]
        first, *others = self.each(lambda job: Run(*job["options"], ranks=job.get("ranks", 2)), [stopped, *ending])
        self.assertEqual((first.code, first.left, len(first.lines)), (-9, [], 1), first.err)
        for done in others:
            self.assertEqual((done.code, done.out[:3], len(done.lines)), (0, "ok ", 1), done.err)

    def test_two_faults(self):
        kind = next(kind for kind in listed("--fault-step", "0", "--second-fault", "sleep") if kind["kind"] == "spin")
        self.assertNotEqual(kind["second_rank"], kind["rank"])
        done = Run("--fault", "spin", "--second-fault", "sleep", *SHORT, "--fault-step", "0", "--limit", "4")
        lines = {match.group(2, 3) for match in map(LINE.fullmatch, done.lines) if match}
        self.assertEqual(lines, {("spin", str(kind["rank"])), ("sleep", str(kind["second_rank"]))}, done.err)
        self.assertNotEqual(done.code, 0)
        self.assertEqual(done.left, [])


class Mismatch(Kinds):
    def test_wrong_values(self):
        for kind, done in self.each(run_kind, [kind for kind in listed(*SHORT) if kind["end"] == "wrong"]):
            with self.subTest(kind["kind"]):
                self.assertEqual((done.code, done.left), (1, []), done.err)
                self.assertRegex(done.out, r"^wrong \d+ values ranks 2 steps 4\n$")
                self.assertIn(f"step {kind['step']} phase {kind['phase']}: word ", done.err)
                self.has_line(kind, done)

    def test_any_end(self):
        kinds = [kind for kind in listed("--fault-step", "0") if kind["end"] == "any"]
        self.assertGreaterEqual(len(kinds), 4)
        for kind, done in self.each(run_until_limit, kinds):
            with self.subTest(kind["kind"]):
                self.has_line(kind, done)
                self.assertNotEqual(done.code, 0)
                self.assertEqual(done.left, [])


class Options(unittest.TestCase):
    def complains(self, line, *arguments):
        done = Run(*arguments)
        self.assertEqual((done.code, done.err, done.out), (2, f"fault_lab: {line}\n", ""))

    def test_complaints(self):
        self.complains("--fault wants a kind that --list prints, not 'sigfoo'", "--fault", "sigfoo")
        self.complains("--fault any_source_starvation needs 3 ranks", "--fault", "any_source_starvation")
        self.complains("--fault lost_result happens on ranks from 1", "--fault", "lost_result", "--fault-rank", "0")
        self.complains("--second-fault sigkill is no hang of one rank outside of MPI", "--fault", "spin", "--second-fault", "sigkill")
        self.complains("--second-fault all_mutex is no hang of one rank outside of MPI", "--fault", "spin", "--second-fault", "all_mutex")
        self.complains("--second-fault spin needs a --fault of one rank that hangs, not sigkill", "--fault", "sigkill", "--second-fault", "spin")
        self.complains("--fault wrong_root can't happen in these --phases", "--fault", "wrong_root", "--phases", "halo,ring")
        self.complains("--fault-rank has to be less than the number of ranks", "--fault", "spin", "--fault-rank", "2")

    def test_list(self):
        kinds = listed("--seed", "7", ranks=5)
        self.assertGreaterEqual(len([kind for kind in kinds if kind["class"] != "clean"]), 24)
        self.assertEqual(len({kind["kind"] for kind in kinds}), len(kinds))
        text = subprocess.run([FAULT_LAB, "--list", "--ranks", "5"], capture_output=True, text=True, timeout=60, check=True).stdout
        self.assertEqual([line.split()[0] for line in text.splitlines()[1:]], [kind["kind"] for kind in kinds])
        for kind in kinds:
            self.assertTrue(kind["possible"])
            self.assertTrue(0 <= kind["rank"] < 5 and 25 <= kind["step"] < 75)
            beside = {"wrong_block": [(kind["rank"] + 1) % 5], "long_block": [(kind["rank"] + 1) % 5], "wrong_gather_block": [0],
                      "wrong_scatter_block": [4], "cyclic_sends": range(5), "start_before_post": range(5)}.get(kind["kind"], [])
            if kind["kind"].startswith("all_"):
                beside = range(5)
            self.assertEqual(kind["culprits"], [] if kind["class"] == "clean" else sorted({kind["rank"], *beside}))

    def test_the_place_can_be_given(self):
        done = Run("--fault", "slow_5", "--fault-rank", "1", "--fault-step", "3", "--fault-phase", "ring", *SHORT)
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("fault: slow_5 rank 1 step 3 phase ring time ", done.lines[0])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
