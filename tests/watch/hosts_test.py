#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`bestride run --watch` of a job on two hosts of the test bed, with an agent on each."""
import contextlib
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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testbed"))
from bed import Bed, reason_against, tool  # noqa: E402  pylint: disable=wrong-import-position

COMMAND = os.environ["COMMAND_UNDER_TEST"]
LIBRARY = os.environ["LIBRARY"]
LAB = os.environ["FAULT_LAB"]
SKIPPED = 77
PATIENCE = 40  # seconds


def eventually(condition, patience=PATIENCE):
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if found := condition():
            return found
        time.sleep(0.1)
    return condition()


def agents():
    """{pid: network namespace} of all agents on this machine."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if len(words) > 2 and os.path.basename(words[0]) == b"bestride" and words[1] == b"agent":
                found[int(pid)] = os.readlink(f"/proc/{pid}/ns/net")
    return found


class Hosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.bed = Bed(2, "none")

    @classmethod
    def tearDownClass(cls):
        cls.bed.__exit__()

    def setUp(self):
        for host in (0, 1):
            self.in_host(host, "sh", "-c", "rm -rf /dev/shm/*")
        self.folder = tempfile.mkdtemp(prefix="bestride-watch-")
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, *lab, options=(), limit=60):
        """The job: one rank on each host. Its output is in self.folder."""
        words = ["ip", "netns", "exec", f"{self.bed.name}-sw", "env", f"TB={self.bed.name}", COMMAND, "run", "--watch", "--verdict-folder",
                 self.folder, *options, "--", tool("run.sh"), "-p", "1", "-l", LIBRARY, LAB, "--work-us", "100", "--limit", str(limit), *lab]
        with open(self.path("output"), "w", encoding="utf-8") as output:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.terminate()
        process.wait(60)

    def path(self, name):
        return os.path.join(self.folder, name)

    def output(self):
        with open(self.path("output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def says(self, text, patience=PATIENCE):
        self.assertTrue(eventually(lambda: text in self.output(), patience), f"no '{text}' in:\n{self.output()}")

    def verdict(self):
        names = [name for name in os.listdir(self.folder) if name.endswith(".verdict.json")]
        self.assertEqual(len(names), 1, self.output())
        with open(self.path(names[0]), encoding="utf-8") as file:
            return json.load(file)

    def in_host(self, host, *words):
        with open(f"/run/netns_testbed/{self.bed.name}/h{host}.pid", encoding="utf-8") as file:
            pid = file.read().strip()
        return subprocess.run(["nsenter", "-t", pid, "-m", "-p", "-n", *words], check=True, stdout=subprocess.PIPE, text=True).stdout

    def agent_of(self, host):
        """The pid of the agent on a host."""
        with open(f"/run/netns_testbed/{self.bed.name}/h{host}.pid", encoding="utf-8") as file:
            space = os.readlink(f"/proc/{file.read().strip()}/ns/net")
        return next((pid for pid, its in agents().items() if its == space), 0)

    def wait_for_agent(self, host):
        agent = eventually(lambda: self.agent_of(host))
        self.assertTrue(agent, f"no agent on h{host}:\n{self.output()}")
        return agent

    def relay(self):
        """The pid of the agent to which another agent is connected; 0: there is none."""
        for pid in filter(None, map(self.agent_of, (0, 1))):
            with contextlib.suppress(subprocess.CalledProcessError):
                sockets = subprocess.run(["nsenter", "-t", str(pid), "-n", "ss", "-tnpH", "state", "established"], check=True,
                                         stdout=subprocess.PIPE, text=True).stdout
                listening = subprocess.run(["nsenter", "-t", str(pid), "-n", "ss", "-tnplH"], check=True, stdout=subprocess.PIPE, text=True).stdout
                ports = re.findall(rf":(\d+) .*pid={pid},", listening)
                if any(re.search(rf":{port} +\S+ .*pid={pid},", sockets) for port in ports):
                    return pid
        return 0

    def wait_for_relay(self):
        pid = eventually(self.relay)
        self.assertTrue(pid, f"no agent is connected through another one:\n{self.output()}")
        return pid

    def nothing_stays(self, hosts=(0, 1)):
        for host in hosts:
            self.assertTrue(eventually(lambda host=host: not self.agent_of(host)), f"an agent is left on h{host}")
            self.assertEqual(self.in_host(host, "find", "/dev/shm", "-type", "f").split(), [])


class Watched(Hosts):
    """The cases that scripts/test runs."""

    def test_a_clean_job_is_silent(self):
        process = self.start("--steps", "10")
        self.assertEqual(process.wait(60), 0, self.output())
        self.assertNotIn("bestride", self.output())
        self.assertEqual(os.listdir(self.folder), ["output"])
        self.nothing_stays()

    def test_the_report_of_mpi_time_has_the_ranks_of_all_hosts(self):
        process = self.start("--steps", "10", options=["--report"])
        self.assertEqual(process.wait(60), 0, self.output())
        self.assertIn("2 ranks on 2 hosts", self.output())
        name = next(name for name in os.listdir(self.folder) if name.endswith(".report.json"))
        with open(self.path(name), encoding="utf-8") as file:
            report = json.load(file)
        self.assertEqual([(rank["rank"], rank["host"], rank["incomplete"]) for rank in report["ranks"]], [(0, "h0", False), (1, "h1", False)])
        self.assertTrue(all(rank["calls"] > 100 for rank in report["ranks"]), report["ranks"])
        self.nothing_stays()

    def test_a_crash_on_another_host(self):
        process = self.start("--steps", "100", "--fault", "sigkill", "--fault-rank", "1", "--fault-step", "3")
        process.wait(60)
        finding = self.verdict()["findings"][0]
        self.assertEqual((finding["class"], finding["culprits"]), ("crash", [1]), self.output())
        # The launcher may have written half a line of its own before it.
        self.assertRegex(self.output(), r"bestride: crash: rank 1 \(pid \d+ on h1\) ")
        self.nothing_stays()

    def test_a_hang_has_the_stacks_of_all_hosts(self):
        """One agent is connected through the other."""
        process = self.start("--steps", "100000", "--fault", "missing_collective", "--fault-rank", "1", "--fault-step", "1000",
                             options=["--on-fault", "abort", "--fan-out", "1"])
        self.wait_for_relay()
        self.assertNotEqual(process.wait(60), 0)
        verdict = self.verdict()
        self.assertEqual(verdict["findings"][0]["class"], "mismatch", self.output())
        self.assertIn("stack: ranks 0,1  main", self.output())
        self.assertNotIn("no stacks", self.output())
        self.assertEqual([rank["host"] for rank in verdict["job"]["ranks"]], ["h0", "h1"])
        # The call site of a rank on another host is known, too.
        self.assertRegex(self.output(), r"rank 1  pid \d+  MPI_\w+\(.*\)  for .* at fault_lab::")
        self.nothing_stays()

    def test_an_agent_that_stops_and_goes_on(self):
        process = self.start("--steps", "100000000", limit=50)
        agent = self.wait_for_agent(1)
        time.sleep(3)
        os.kill(agent, signal.SIGSTOP)
        self.says("bestride: the agent on h1 has not answered for")
        self.assertIn("rank 1 is not watched now", self.output())
        os.kill(agent, signal.SIGCONT)
        self.says("bestride: the agent on h1 answers again")
        self.assertNotIn("unreachable", self.output())
        self.end(process)
        self.nothing_stays()


class Failing(Hosts):
    """Failures of hosts, agents and heads; only in scripts/long-test."""

    def test_an_agent_that_is_killed(self):
        process = self.start("--steps", "100000000", limit=50)
        agent = self.wait_for_agent(1)
        time.sleep(3)  # until the head has heard of its rank
        os.kill(agent, signal.SIGKILL)
        self.says("bestride: the agent on h1 has not answered for")
        self.assertIsNone(process.poll())
        self.end(process)
        self.nothing_stays(hosts=[0])  # the records on h1 stay until a later job

    def test_a_relay_that_stops(self):
        """The agent that is connected through it connects to the head itself."""
        process = self.start("--steps", "100000000", options=["--fan-out", "1"], limit=60)
        relay = self.wait_for_relay()
        relayed = next(host for host in (0, 1) if self.agent_of(host) != relay)
        time.sleep(3)
        os.kill(relay, signal.SIGSTOP)
        try:
            self.says(f"bestride: the agent on h{1 - relayed} has not answered for")
            time.sleep(5)
            self.assertNotIn(f"the agent on h{relayed}", self.output())
            self.assertNotIn("unreachable", self.output())
        finally:
            os.kill(relay, signal.SIGCONT)
        self.says(f"the agent on h{1 - relayed} answers again")
        lab = self.in_host(relayed, "pgrep", "-x", "fault_lab").split()
        self.in_host(relayed, "kill", "-KILL", *lab)
        process.wait(60)
        finding = self.verdict()["findings"][0]
        self.assertEqual((finding["class"], finding["culprits"]), ("crash", [relayed]), self.output())
        self.nothing_stays()

    def test_a_rank_of_another_host_that_becomes_slow(self):
        process = self.start("--steps", "10000", "--work-us", "2000", "--fault", "slow_20", "--fault-rank", "1", "--fault-step", "2500", limit=120)
        self.says("bestride: slow: rank 1 ", patience=100)
        self.end(process)
        self.nothing_stays()

    def test_a_host_that_vanishes(self):
        self.start("--steps", "100000000", limit=50)
        agent = self.wait_for_agent(1)
        time.sleep(3)
        try:
            for device in ("mgmt0", "data0"):
                self.in_host(1, "ip", "link", "set", device, "down")
            self.says("bestride: unreachable host: no answer from h1, on which rank 1 is")
        finally:
            os.kill(agent, signal.SIGKILL)
            for device in ("mgmt0", "data0"):
                self.in_host(1, "ip", "link", "set", device, "up")

    def test_the_head_is_killed(self):
        """Each agent then watches its host alone, and keeps its verdict in a file."""
        process = self.start("--steps", "100000000", limit=60)
        self.assertTrue(eventually(lambda: self.agent_of(0) and self.agent_of(1)))
        process.kill()
        process.wait(60)
        time.sleep(14)  # after 12 s without a question
        lab = self.in_host(1, "pgrep", "-x", "fault_lab").split()
        self.in_host(1, "kill", "-KILL", *lab)
        name = eventually(lambda: next((name for name in os.listdir(self.folder) if name.endswith(".h1.verdict.json")), None))
        self.assertTrue(name)
        with open(self.path(name), encoding="utf-8") as file:
            finding = json.load(file)["findings"][0]
        self.assertEqual((finding["class"], finding["culprits"]), ("crash", [1]))
        self.nothing_stays()


if __name__ == "__main__":
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    unittest.main()
