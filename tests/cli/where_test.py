#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `bestride where` on the records of simulated jobs (write_records) and compares its output.

The ranks are child processes that sleep, so that their states in /proc are real.
"""
import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
WRITE_RECORDS = os.environ["WRITE_RECORDS"]
WITH_LIBDW = os.environ.get("WITH_LIBDW") == "1"


def line_of(text):
    """The number of the line of write_records.cpp that contains `text`."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "write_records.cpp"), encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def may_trace():
    """False if the command may not trace the ranks, because it is not an ancestor of them here."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="utf-8") as file:
            scope = int(file.read())
    except OSError:
        scope = 0
    if scope > 2 or (scope > 0 and os.geteuid() != 0):
        return False
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)  # pylint: disable=protected-access
    may = ptrace_seize(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return may


def ptrace_seize(pid):
    libc = ctypes.CDLL(None)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return libc.ptrace(0x4206, pid, None, None) == 0  # PTRACE_SEIZE


class WhereTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="bestride-where-")
        self.addCleanup(shutil.rmtree, self.folder)

    def process(self):
        child = subprocess.Popen(["sleep", "600"])  # pylint: disable=consider-using-with
        self.addCleanup(lambda: (child.kill(), child.wait()))
        return child

    def job(self, ranks, name="hydra-1", size=None):
        """Writes the records of a job; `ranks`: (process or pid, commands) each. Returns the process that writes."""
        writer = subprocess.Popen([WRITE_RECORDS, f"{self.folder}/{name}", str(size or len(ranks))],  # pylint: disable=consider-using-with
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (writer.stdin.close(), writer.wait(), writer.stdout.close()))
        for number, (process, commands) in enumerate(ranks):
            writer.stdin.write(f"{number} {getattr(process, 'pid', process)} {commands}\n")
        writer.stdin.write("go\n")
        writer.stdin.flush()
        self.assertEqual(writer.stdout.readline(), "ready\n")
        return writer

    def run_where(self, *words, **environment):
        return subprocess.run([COMMAND, "where", "--records", self.folder, *words], env={**os.environ, **environment}, text=True,
                              capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL)

    def where(self, *words, **environment):
        done = self.run_where(*words, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        return done.stdout

    def json(self, *words):
        return json.loads(self.where("--json", *words))

    def test_no_records(self):
        self.assertEqual(self.json(), {"format": "bestride-where", "version": 1, "jobs": []})
        done = self.run_where()
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, f"bestride: no records in '{self.folder}'; --records needs a folder like /dev/shm/bestride-<uid>, which has a folder "
                         "for each job\n")
        with open(f"{self.folder}/1.record", "wb"):
            self.assertEqual(self.run_where().stderr,
                             f"bestride: no records in '{self.folder}'; it is the folder of one job: give the folder above it to --records\n")

    def test_a_job_without_a_readable_record(self):
        os.mkdir(f"{self.folder}/hydra-1")
        with open(f"{self.folder}/hydra-1/1.record", "wb"):
            pass
        text = self.where()
        self.assertIn("job hydra-1: no readable record", text)
        self.assertNotIn("the job has ended", text)

    def test_a_folder_that_is_none(self):
        for name, cause in (("nowhere", "No such file or directory"), ("file", "it is not a folder")):
            if name == "file":
                with open(f"{self.folder}/file", "wb"):
                    pass
            for option in ([], ["--json"], ["--clean"], ["--stacks"]):
                done = subprocess.run([COMMAND, "where", "--records", f"{self.folder}/{name}", *option], text=True, capture_output=True, timeout=60,
                                      check=False)
                self.assertEqual((done.returncode, done.stdout), (2, ""), option)
                self.assertRegex(done.stderr, rf"\Abestride: can't read '{self.folder}/{name}': {cause}; --records needs a folder like .*\n\Z")

    def test_one_rank_is_missing_in_an_allreduce(self):
        ranks = [(self.process(), "collective MPI_Allreduce; bytes 8") for _ in range(7)]
        ranks[5] = (ranks[5][0], "call MPI_Send 3; end")
        self.job(ranks)
        text = self.where()
        self.assertRegex(text, r"(?m)^job hydra-1 on node1: 7 processes of 7 ranks, no progress$")
        self.assertRegex(text, r"(?m)^  ranks 0-4,6  MPI_Allreduce\(MPI_COMM_WORLD #1, 8 B\)  for .*  waits for rank 5$")
        self.assertRegex(text, rf"(?m)^  rank 5  pid {ranks[5][0].pid}  not in MPI  for \S+ m?s  (?:asleep|sleeping) \(S, \w+\)  last MPI_Send\(MPI_COMM_WORLD, to 3\)$")
        self.assertRegex(text, r"(?m)^  => rank 5 holds up ranks 0-4,6: not in MPI, sleeping \(S")
        found = self.json()["jobs"][0]
        self.assertEqual((found["culprits"], found["waiting"], found["cycles"]), ([5], [0, 1, 2, 3, 4, 6], []))
        self.assertEqual(found["ranks"][0]["waits"][0]["conditions"][0]["ranks"], [5])
        self.assertEqual(found["ranks"][0]["threads"][0]["current"]["function"], "MPI_Allreduce")

    def test_a_ring_of_receives(self):
        self.job([(self.process(), f"call MPI_Recv {(number + 1) % 4}") for number in range(4)])
        text = self.where()
        self.assertIn("  => deadlock: ranks wait for each other in a cycle: 0 -> 1 -> 2 -> 3 -> 0\n", text)
        self.assertRegex(text, r"(?m)^  rank 2  pid \d+  MPI_Recv\(MPI_COMM_WORLD, from 3\)  for .*  waits for rank 3$")
        self.assertEqual(self.json()["jobs"][0]["cycles"], [[0, 1, 2, 3]])

    def test_a_killed_rank(self):
        ranks = [(self.process(), "collective MPI_Barrier") for _ in range(3)]
        ranks[1] = (ranks[1][0], "collective MPI_Allreduce; end; call MPI_Recv 0; bytes 16")
        ranks[0] = (ranks[0][0], "collective MPI_Allreduce; end; collective MPI_Barrier")
        ranks[2] = (ranks[2][0], "collective MPI_Allreduce; end; collective MPI_Barrier")
        self.job(ranks)
        ranks[1][0].kill()
        ranks[1][0].wait()
        text = self.where()
        self.assertRegex(text, r"(?m)^  rank 1  pid \d+  gone \(killed, or ended by _exit\(\), before MPI_Finalize\)  was in MPI_Recv\(MPI_COMM_WORLD, from 0, 16 B\)$")
        self.assertIn("  => rank 1 holds up ranks 0,2: gone (killed, or ended by _exit(), before MPI_Finalize)\n", text)
        self.assertIn("records of ended processes removed: 1; of running processes kept: 2\n", self.where("--clean"))
        done = subprocess.run([COMMAND, "where", "--records", self.folder, "--clean", "no-such-job"], text=True, capture_output=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Abestride: there is no record of a job 'no-such-job'; .*\n\Z")
        self.assertNotIn("gone", self.where())
        self.assertIn("1 rank has no record on this host", self.where())

    def test_a_rank_that_called_exit(self):
        ranks = [(self.process(), "collective MPI_Barrier"), (self.process(), "collective MPI_Barrier; end; exit 3")]
        self.job(ranks)
        ranks[1][0].kill()
        ranks[1][0].wait()
        self.assertRegex(self.where(), r"(?m)^  rank 1  pid \d+  gone \(exited with code 3 before MPI_Finalize\)  last MPI_Barrier")

    def test_a_stopped_rank(self):
        ranks = [(self.process(), "collective MPI_Barrier") for _ in range(2)]
        ranks[1] = (ranks[1][0], "call MPI_Send 0; end")
        self.job(ranks)
        ranks[1][0].send_signal(signal.SIGSTOP)
        for _ in range(100):
            if "stopped (T)" in self.where():
                break
            time.sleep(0.1)
        self.assertRegex(self.where(), r"  => rank 1 holds up rank 0: not in MPI, stopped \(T\)")

    def test_different_collective_calls(self):
        ranks = [(self.process(), "collective MPI_Allreduce") for _ in range(3)]
        ranks[1] = (ranks[1][0], "collective MPI_Bcast 0")
        self.job(ranks)
        self.assertIn("  => different collective calls as #1 on MPI_COMM_WORLD: MPI_Allreduce by ranks 0,2; MPI_Bcast root 0 by rank 1\n",
                      self.where())

    def test_requests(self):
        self.job([(self.process(), "request MPI_Irecv 1; request MPI_Irecv 2; wait MPI_Waitall"), (self.process(), ""),
                  (self.process(), "request MPI_Irecv 0; request MPI_Irecv 1; wait MPI_Waitany")])
        text = self.where()
        self.assertRegex(text, r"(?m)^  rank 0 .*MPI_Waitall\(2 requests\)  for .*  waits for ranks 1,2$")
        self.assertRegex(text, r"(?m)^  rank 2 .*MPI_Waitany\(2 requests\)  for .*  waits for any of ranks 0,1$")

    def test_progress(self):
        self.job([(0, "busy"), (self.process(), "call MPI_Recv 0")], name="a")
        text = self.where("a")
        self.assertRegex(text, r"(?m)^job a on node1: 2 processes of 2 ranks, progressing \(1 of 2\)$")
        self.assertRegex(text, r"(?m)^  rank 0 .*progressing$")
        self.assertNotRegex(text, r"(?m)^  rank 1 .*progressing$")
        self.job([(0, "call MPI_Send 1; end; polling"), (self.process(), "call MPI_Recv 0")], name="b")
        text = self.where("b")
        self.assertRegex(text, r"(?m)^job b .*, no progress$")
        self.assertRegex(text, r"(?m)^  rank 0 .*polls with MPI_Test")
        self.assertIn("holds up rank 1: polls with MPI_Test", text)
        self.assertEqual([rank["activity"] for rank in self.json("b")["jobs"][0]["ranks"]], ["polling", "none"])

    @unittest.skipUnless(WITH_LIBDW, "no libdw in this build")
    def test_source_lines(self):
        self.job([(self.process(), "collective MPI_Barrier; site"), (self.process(), "")])
        line = line_of("the line that where_test.py looks for")
        self.assertRegex(self.where(), rf"  at \S*solve \(write_records\.cpp:{line}\)  waits for rank 1\n")
        site = self.json()["jobs"][0]["ranks"][0]["threads"][0]["current"]["site"]
        self.assertEqual((os.path.basename(site["file"]), site["line"]), ("write_records.cpp", line))

    @unittest.skipUnless(WITH_LIBDW and may_trace(), "no libdw in this build, or no permission to trace")
    def test_stacks(self):
        ranks = [(self.process(), "collective MPI_Barrier") for _ in range(4)]
        ranks[2] = (0, "")  # the process of write_records, with a main thread and a thread that reads
        self.job(ranks)
        # It takes some time until each "sleep" is in its system call.
        for _ in range(100):
            text = self.where("--stacks")
            if re.search(r"(?m)^    ranks 0,1,3  .*nanosleep", text):
                break
            time.sleep(0.1)
        self.assertRegex(text, r"(?m)^  stacks:\n    ranks 0,1,3  .*nanosleep.*\n    rank 2       main \(write_records.cpp:\d+\) > .*nanosleep.*\n    rank 2 +\[threads\] .*read.*\n\Z")
        self.assertNotIn("__libc_start", text)
        self.assertRegex(self.where("--stacks", "--all-frames"), "__libc_start")
        stacks = self.json("--stacks")["jobs"][0]["stacks"]
        self.assertEqual((stacks["failed"], stacks["cut"]), ([], []))
        self.assertGreater(stacks["longest_stop_seconds"], 0)
        self.assertEqual([(node["ranks"], node["threads"], node.get("thread")) for node in stacks["tree"]],
                         [([0, 1, 3], 3, None), ([2], 1, None), ([2], 1, "threads")])
        self.assertEqual(stacks["tree"][1]["frames"][0]["function"], "main")
        self.assertEqual(os.path.basename(stacks["tree"][1]["frames"][0]["file"]), "write_records.cpp")
        self.assertNotIn("stacks", self.json()["jobs"][0])
        self.assertNotIn("stacks", self.where())
        for process in (rank[0] for rank in ranks if rank[0]):
            self.assertIsNone(process.poll())
        self.assertEqual(self.run_where("--all-frames").returncode, 2)

    @unittest.skipUnless(WITH_LIBDW and may_trace(), "no libdw in this build, or no permission to trace")
    def test_stacks_of_processes_that_are_traced_or_have_ended(self):
        ranks = [(self.process(), "collective MPI_Barrier") for _ in range(3)]
        self.job(ranks)
        ranks[0][0].kill()
        ranks[0][0].wait()
        self.assertTrue(ptrace_seize(ranks[1][0].pid))
        text = self.where("--stacks")
        self.assertRegex(text, r"(?m)^    rank 2  ")
        self.assertRegex(text, rf"(?m)^    no stacks of rank 1: process {ranks[1][0].pid} can't be traced: process {os.getpid()} \(\S+\) traces it; end that one first$")
        failed = self.json("--stacks")["jobs"][0]["stacks"]["failed"]
        self.assertEqual([(failure["rank"], failure["pid"]) for failure in failed], [(1, ranks[1][0].pid)])
        for process, _ in ranks[1:]:
            process.kill()
            process.wait()
        self.assertIn("  no stacks: the job has ended\n", self.where("--stacks"))

    def test_many_ranks_fit_a_screen(self):
        process = self.process()
        self.job([(process, f"call MPI_Recv {(number + 1) % 300}") for number in range(300)])
        lines = self.where().splitlines()
        self.assertLessEqual(len(lines), 40)
        self.assertRegex("\n".join(lines), r"  and 276 more ranks; --json has all")
        self.assertRegex("\n".join(lines), r"cycle: 0 -> 1 -> .* \(300 ranks\) -> 0")
        self.assertEqual(len(self.json()["jobs"][0]["ranks"]), 300)

    def test_many_jobs_fit_a_screen(self):
        process = self.process()
        for job in range(12):
            self.job([(process, f"call MPI_Recv {(number + 1) % 5}") for number in range(5)], name=f"job{job}")
        self.assertLessEqual(len(self.where().splitlines()), 42)
        self.assertIn("and 8 more jobs; ", self.where())

    def test_ended_jobs(self):
        ended, running = [self.process(), self.process()], self.process()
        self.job([(ended[0], "call MPI_Recv 1"), (ended[1], "call MPI_Send 0; end")], name="ended")
        for process in ended:
            process.kill()
            process.wait()
        text = self.where()
        self.assertIn("job ended on node1: 0 processes of 2 ranks, ended\n", text)
        self.assertIn("  => the job has ended, and no rank has noted why: ", text)
        self.assertRegex(text, r"(?m)^  rank 0  pid \d+  gone \(killed, [^)]*\), before MPI_Finalize\)  was in MPI_Recv\(MPI_COMM_WORLD, from 1\)$")
        self.assertNotRegex(text, "waits for|holds? up|held up|deadlock")
        found = self.json("ended")["jobs"][0]
        self.assertEqual((found["waiting"], found["culprits"], found["cycles"], [rank["waits"] for rank in found["ranks"]]), ([], [], [], [[], []]))
        self.assertIn("killed", found["ranks"][0]["end"])
        self.job([(running, "call MPI_Recv 0")], name="running")
        text = self.where()
        self.assertNotIn("job ended", text)
        self.assertIn("records of 1 job that has ended (ended): ", text)
        self.assertIn("job ended", self.where("ended"))
        self.where("--clean")
        self.assertNotIn("has ended", self.where())

    def ended_job(self, *commands):
        """The text about a job whose processes have ended, each after one of the commands."""
        ranks = [(self.process(), words) for words in commands]
        name = f"over{len(os.listdir(self.folder))}"
        self.job(ranks, name=name)
        for process, _ in ranks:
            process.kill()
            process.wait()
        return self.where(name)

    def test_how_a_job_has_ended(self):
        waits = "call MPI_Recv 1"
        text = self.ended_job(waits, "collective MPI_Barrier; end; signal 11", waits)
        self.assertRegex(text, r"(?m)^  rank 1 .* gone \(ended by signal 11 \(Segmentation fault\)\)  last MPI_Barrier")
        self.assertIn("  => the job has ended: rank 1 was ended by signal 11 (Segmentation fault)\n", text)
        text = self.ended_job(waits, waits + "; error Message truncated", "exit 1")
        self.assertIn("  => the job has ended: rank 1 was ended by an MPI error: Message truncated, as the first that has noted its end\n", text)
        text = self.ended_job(waits, "exit 3")
        self.assertIn("  => the job has ended: rank 1 exited with code 3 before MPI_Finalize\n", text)
        text = self.ended_job("exit 3", "exit 4")
        self.assertIn("  => the job has ended: ranks ended in different ways, and which was the first is not known\n", text)
        text = self.ended_job("call MPI_Abort", "collective MPI_Barrier")
        self.assertIn("  => the job has ended: rank 0 called MPI_Abort\n", text)
        text = self.ended_job("state 3", "state 3")
        self.assertIn("  => the job has ended: all ranks with a record here have called MPI_Finalize\n", text)

    def test_a_job_in_which_nobody_waits_for_another(self):
        self.job([(self.process(), "collective MPI_Barrier; end") for _ in range(3)])
        for _ in range(100):  # until they sleep
            text = self.where()
            if "=>" in text:
                break
            time.sleep(0.1)
        self.assertIn("  => no rank waits for another: all ranks sleep outside MPI\n", text)

    def test_selection(self):
        processes = [self.process(), self.process()]
        self.job([(processes[0], "call MPI_Recv 0")], name="one")
        self.job([(processes[1], "call MPI_Recv 0")], name="two")
        for selection in ("two", str(processes[1].pid)):
            text = self.where(selection)
            self.assertIn("job two on", text)
            self.assertNotIn("job one on", text)
        text = self.where(str(os.getpid()))  # the parent of both
        self.assertTrue("job one on" in text and "job two on" in text)
        done = self.run_where("three")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"\Abestride: there is no record of a job 'three'; [^\n]+\n\Z")

    def test_calls(self):
        self.job([(self.process(), "call MPI_Send 0; bytes 5; end; collective MPI_Barrier; end; call MPI_Recv 0")])
        text = self.where("--calls", "1")
        self.assertRegex(text, r"(?m)^  last calls of rank 0, pid \d+:\n    \S+ \S+ ago  MPI_Barrier\(MPI_COMM_WORLD #1\)  \S+ [num]?s$")
        self.assertEqual(len(self.json("--calls", "2")["jobs"][0]["ranks"][0]["threads"][0]["finished"]), 2)

    def test_damaged_records(self):
        self.job([(self.process(), "call MPI_Recv 0")])
        with open(f"{self.folder}/hydra-1/7.record", "wb") as file:
            file.write(b"\0" * 100)
        text = self.where()
        self.assertIn(f"has 100 bytes, a record has {316 * 1024}; remove it", text)
        self.assertIn("deadlock: rank 0 waits for itself", text)

    def test_no_color_without_a_terminal(self):
        self.job([(self.process(), "call MPI_Recv 0")])
        self.assertNotIn("\033", self.where())
        for no_color, colored in (("", True), ("1", False)):
            text = subprocess.run([sys.executable, "-c", "import pty, sys; pty.spawn(sys.argv[1:])", COMMAND, "where", "--records", self.folder],
                                  env={**os.environ, "NO_COLOR": no_color}, capture_output=True, timeout=60, check=False,
                                  stdin=subprocess.DEVNULL).stdout
            self.assertEqual(b"\033[1;31m" in text, colored, text)


if __name__ == "__main__":
    unittest.main()
