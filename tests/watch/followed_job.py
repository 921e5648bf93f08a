# SPDX-License-Identifier: Apache-2.0
"""A job of followed_program.cpp under `bestride run --watch`, for the tests of this folder."""
import contextlib
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

COMMAND = os.environ["COMMAND_UNDER_TEST"]
MPIEXEC = os.environ["MPIEXEC"]
PROGRAM = os.environ["FOLLOWED_PROGRAM"]
RECORDS = f"/dev/shm/bestride-{os.geteuid()}"
PATIENCE = 60  # seconds


def eventually(condition, patience=PATIENCE):
    until = time.monotonic() + patience
    while not (found := condition()) and time.monotonic() < until:
        time.sleep(0.05)
    return found


def alive(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
    return False


def below(ancestor):
    """{pid: name} of the processes below one."""
    parents, names = {}, {}
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            name, _, rest = file.read().partition("(")[2].rpartition(")")
            parents[pid], names[pid] = int(rest.split()[1]), name
    found = {}

    def add(of):
        for pid, parent in parents.items():
            if parent == of:
                found[pid] = names[pid]
                add(pid)
    add(ancestor)
    return found


class Job:
    """One launch. `launcher`: the words after `bestride run ... --`, in which {program} and {folder} are replaced."""

    def __init__(self, launcher=None, ranks=2, options=(), before=(), environment=None, start=None):
        self.folder = tempfile.mkdtemp(prefix="bestride-job-")
        os.mkfifo(self.path("gate"))
        launcher = launcher or [MPIEXEC, "-n", str(ranks), "{program}", "{folder}"]
        launcher = [word.format(program=PROGRAM, folder=self.folder) for word in launcher]
        words = [*before, COMMAND, "run", "--watch", "--verdict-folder", self.folder, *options, "--", *launcher]
        self.size = ranks
        self.pids = set()
        if start:
            self.pid = start(words)
            return
        with open(self.path("output"), "w", encoding="utf-8") as output:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment, cwd=self.folder)  # pylint: disable=consider-using-with
        self.pid = self.process.pid

    def path(self, name):
        return os.path.join(self.folder, name)

    def output(self):
        with open(self.path("output"), encoding="utf-8", errors="replace") as file:
            return file.read()

    def said(self):
        """The lines of Bestride's own messages."""
        return [line for line in self.output().splitlines() if "bestride:" in line]

    def findings(self):
        found = []
        for name in glob.glob(self.path("*.verdict.json")):
            with open(name, encoding="utf-8") as file:
                found += json.load(file)["findings"]
        return found

    def processes(self):
        """{pid: name} of the launcher, its proxy and the ranks."""
        found = below(self.pid)
        self.pids |= set(found)
        return found

    def records(self):
        """Of this job: paths by pid."""
        found = {os.path.basename(path)[:-len(".record")]: path for path in glob.glob(f"{RECORDS}/*/*.record")}
        paths = {int(name): path for name, path in found.items() if name.isdigit()}  # other names: other jobs in PID namespaces of their own
        return {pid: paths[pid] for pid in self.processes() if pid in paths}

    def ranks(self):
        """The pids of all ranks, in no order, once they have begun."""
        found = eventually(lambda: records if len(records := self.records()) == self.size else None)
        if not found:
            raise AssertionError(f"not all ranks have begun:\n{self.output()}")
        self.tell("nothing")
        self.until_told()  # MPI_Init has returned
        return list(found)

    def launcher(self):
        return next(pid for pid in self.processes() if os.path.basename(MPIEXEC).startswith(below(self.pid)[pid][:15]))

    def tell(self, command):
        with open(self.path("new"), "w", encoding="utf-8") as file:
            file.write(command + "\n")
        os.rename(self.path("new"), self.path("command"))

    def until_told(self):
        """Until rank 0 has read the command."""
        if not eventually(lambda: not os.path.exists(self.path("command"))):
            raise AssertionError(f"the command was not read:\n{self.output()}")

    @contextlib.contextmanager
    def blocked(self):
        """Rank 1 is blocked inside."""
        self.tell("block")
        gate = eventually(self.open_gate)
        if gate is None:
            raise AssertionError(f"rank 1 does not read:\n{self.output()}")
        yield
        os.write(gate, b"x")
        os.close(gate)

    def open_gate(self):
        with contextlib.suppress(OSError):  # nobody reads yet
            return os.open(self.path("gate"), os.O_WRONLY | os.O_NONBLOCK)
        return None

    def wait(self, patience=PATIENCE):
        return self.process.wait(patience)

    def until_found(self, patience=PATIENCE):
        """The first finding."""
        if not eventually(self.findings, patience):
            raise AssertionError(f"no verdict:\n{self.output()}")
        return self.findings()[0]

    def clean_up(self):
        self.processes()
        if hasattr(self, "process") and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for pid in self.pids:
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                if self.folder.encode() in file.read():  # else a later process has this pid
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder)


class FollowedJobs(unittest.TestCase):
    def start(self, *arguments, **more):
        job = Job(*arguments, **more)
        self.addCleanup(job.clean_up)
        return job

    def ends_with(self, job, code):
        """Lets the program end with this exit code, which has to be that of the command, too."""
        job.tell(f"end {code}")
        self.assertEqual(job.wait(), code, job.output())

    def finds_a_hang(self, job):
        """Lets rank 1 hang. Of all findings only this one has not ended."""
        began = time.time()
        job.tell("hang")
        self.assertTrue(eventually(lambda: [each["class"] for each in job.findings() if "ended" not in each] == ["non-communication hang"]), job.output())
        finding = next(each for each in job.findings() if "ended" not in each)
        self.assertEqual((finding["class"], finding["cause"], finding["culprits"]), ("non-communication hang", "blocked", [1]), job.output())
        return finding, began
