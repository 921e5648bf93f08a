# SPDX-License-Identifier: Apache-2.0
"""One launch of fuzz_programs, bare or in a mode, with a watchdog."""
import glob
import os
import re
import shutil
import signal
import subprocess
import time


class Mode:
    """A name, the environment of the ranks, the ranks that have the preload library, and the files of which this mode needs one."""

    def __init__(self, name, environment=None, preload=lambda rank: True, nodes=0, needs=None):
        self.name, self.environment, self.preload, self.nodes, self.needs = name, environment or {}, preload, nodes, needs


HIERARCHICAL = {"BESTRIDE_ALL_RANKS": "1", "BESTRIDE_COLLECTIVES": "hierarchical", "BESTRIDE_FORCE": "sum_order=first"}
BARE = Mode("bare", preload=lambda rank: False)
MODES = {mode.name: mode for mode in (
    Mode("default"),
    Mode("pack", {"BESTRIDE_STRATEGY": "pack"}),
    Mode("respell", {"BESTRIDE_STRATEGY": "respell"}),
    Mode("forward", {"BESTRIDE_STRATEGY": "forward"}),
    Mode("paranoid", {"BESTRIDE_PARANOID": "1"}),
    Mode("all_ranks", {"BESTRIDE_ALL_RANKS": "1"}),
    Mode("one_node", HIERARCHICAL),
    Mode("one_node_small_window", dict(HIERARCHICAL, BESTRIDE_WINDOW_LIMIT="1K")),
    Mode("one_node_report", dict(HIERARCHICAL, BESTRIDE_REPORT="1")),
    Mode("nodes2", HIERARCHICAL, nodes=2),
    Mode("nodes3", HIERARCHICAL, nodes=3),
    Mode("nodes2_small_cache", dict(HIERARCHICAL, BESTRIDE_CACHE_BYTES="64K"), nodes=2),
    Mode("nodes2_small_window", dict(HIERARCHICAL, BESTRIDE_WINDOW_LIMIT="1K"), nodes=2),
    Mode("nodes3_thread", dict(HIERARCHICAL, BESTRIDE_PROGRESS="thread"), nodes=3),
    Mode("nodes2_thread", dict(HIERARCHICAL, BESTRIDE_PROGRESS="thread"), nodes=2),
    Mode("nodes2_report", dict(HIERARCHICAL, BESTRIDE_REPORT="1"), nodes=2),
    Mode("nodes2_pack", dict(HIERARCHICAL, BESTRIDE_STRATEGY="pack"), nodes=2),
    Mode("fake_cuda", needs="fake_cuda"),
    Mode("nodes2_fake_cuda", HIERARCHICAL, nodes=2, needs="fake_cuda"),
    Mode("near_ranks", {"BESTRIDE_FORCE": "contiguous=near"}, needs="near_profile"),
    Mode("near_some_ranks", {"BESTRIDE_FORCE": "contiguous=near"}, preload=lambda rank: rank % 2 == 0, needs="near_profile"),
    Mode("only_alltoall", {"BESTRIDE_ALL_RANKS": "1"}, needs="alltoall_profile"),
    Mode("some_ranks", preload=lambda rank: rank % 2 == 0),
    Mode("some_ranks_pack", {"BESTRIDE_STRATEGY": "pack"}, preload=lambda rank: rank % 2 == 1),
)}


class Outcome:
    """The result of a launch. The traces are in files that begin with `prefix`."""

    def __init__(self, prefix, ranks, status, text, seconds, stacks=""):
        self.prefix, self.ranks, self.status, self.text, self.seconds, self.stacks = prefix, ranks, status, text, seconds, stacks

    @property
    def ended(self):
        return self.status == 0

    def trace(self, rank):
        try:
            with open(f"{self.prefix}.{rank}", encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""


def children_of(pid):
    """All descendants of a process, from /proc."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                pass
    found, front = [], [pid]
    while front:
        front = [child for child, parent in parents.items() if parent in front]
        found += front
    return found


IDLE_THREADS = ("epoll_wait", "work(void*)")


def threads_of(text):
    """The function names of each thread of a gdb backtrace, innermost first, without helper threads."""
    threads = []
    for line in text.splitlines():
        if line.startswith("Thread"):
            threads.append([])
        elif line.startswith("#") and threads:
            name = re.sub(r"^#\d+\s+(0x[0-9a-f]+ in )?", "", line)
            library = re.search(r"from (\S+)$", name)
            name = re.sub(r"<.*|\(.*", "", name.replace("(anonymous namespace)::", "").replace("bestride::", ""))
            threads[-1].append((os.path.basename(library.group(1)) if library else "program") if name.startswith("??") else name.strip())
    return [names for names in threads if not any(idle.split("(")[0] in names for idle in IDLE_THREADS)]


def stacks_of(pids, program):
    if not shutil.which("gdb"):
        return "no stacks: gdb is not installed\n"
    text = ""
    for pid in pids:
        try:
            if os.path.realpath(f"/proc/{pid}/exe") != os.path.realpath(program):
                continue
            done = subprocess.run(["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"], capture_output=True, text=True, timeout=60,
                                  stdin=subprocess.DEVNULL, check=False)
            for names in threads_of(done.stdout):
                text += f"process {pid}: " + " < ".join(name for i, name in enumerate(names[:24]) if i == 0 or name != names[i - 1]) + "\n"
        except (OSError, subprocess.SubprocessError) as error:
            text += f"process {pid}: no stack: {error}\n"
    return text


def end(process):
    """Ends a launch and its child processes, by process id."""
    for pid in [*children_of(process.pid), process.pid]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    process.wait()


class Launcher:
    """`files`: the paths of what modes need, by name."""

    VARIABLES = {"fake_cuda": "BESTRIDE_CUDA_DRIVER", "near_profile": "BESTRIDE_PROFILE", "alltoall_profile": "BESTRIDE_PROFILE"}

    def __init__(self, program, library, files, mpiexec, folder, stall):
        self.program, self.library, self.files, self.mpiexec, self.folder, self.stall = program, library, files, mpiexec, folder, stall
        self.count = 0

    def topology(self, ranks, nodes):
        """A topology file with `nodes` nodes of about equal size, or one node per rank if there are fewer ranks."""
        nodes = min(nodes, ranks)
        path = os.path.join(self.folder, f"topology-{ranks}-{nodes}")
        with open(path, "w", encoding="utf-8") as file:
            for node in range(nodes):
                first, last = node * ranks // nodes, (node + 1) * ranks // nodes - 1
                file.write(f"node {first}-{last}\n" if last > first else f"node {first}\n")
        return path

    def command(self, mode, ranks, arguments):
        settings = {"FUZZ_FOLDER": self.folder, "HOME": self.folder, "TEST_YIELD": "1", **mode.environment}
        if mode.nodes:
            settings["BESTRIDE_TOPOLOGY"] = self.topology(ranks, mode.nodes)
        if mode.environment.get("BESTRIDE_REPORT"):
            settings["BESTRIDE_REPORT_FILE"] = os.path.join(self.folder, "report.json")
        if mode.needs:
            settings[self.VARIABLES[mode.needs]] = self.files[mode.needs]
        command = [self.mpiexec]
        for name, value in settings.items():
            command += ["-genv", name, value]
        if all(mode.preload(rank) for rank in range(ranks)):
            return [*command, "-genv", "LD_PRELOAD", self.library, "-n", str(ranks), *arguments]
        if not any(mode.preload(rank) for rank in range(ranks)):
            return [*command, "-n", str(ranks), *arguments]
        for rank in range(ranks):
            command += [":"] if rank else []
            command += ["-n", "1", *(["-env", "LD_PRELOAD", self.library] if mode.preload(rank) else []), *arguments]
        return command

    def run(self, mode, ranks, arguments, program=None):
        """Runs fuzz_programs, or another program without traces, until it ends or makes no progress for `stall` seconds."""
        self.count += 1
        prefix = os.path.join(self.folder, f"trace-{self.count}")
        call = [program] if program else [self.program, *arguments, "--trace", prefix]
        started = time.monotonic()
        with open(prefix + ".out", "w", encoding="utf-8") as output:
            process = subprocess.Popen(self.command(mode, ranks, call), stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                       cwd=self.folder, start_new_session=True)
        seen, moved, stacks, status = None, time.monotonic(), "", None
        pause = 0.01
        while status is None:
            try:
                status = process.wait(timeout=pause)
                stacks = ""
                break
            except subprocess.TimeoutExpired:
                pause = min(0.2, pause * 2)
            now = [(stat.st_size, stat.st_mtime_ns) for stat in map(os.stat, sorted(glob.glob(prefix + ".[0-9]*")))]
            if now != seen:
                seen, moved, stacks = now, time.monotonic(), ""
            elif time.monotonic() - moved > self.stall:
                # On a busy machine the ranks may be this slow, so they get the same time again after the stacks are taken.
                if stacks:
                    end(process)
                    status = "hang"
                else:
                    stacks = stacks_of(children_of(process.pid), program or self.program) or "no stacks\n"
                    moved = time.monotonic()
        with open(prefix + ".out", encoding="utf-8", errors="replace") as output:
            text = output.read()
        return Outcome(prefix, ranks, status, text, time.monotonic() - started, stacks)

    def forget(self, outcome):
        for rank in range(outcome.ranks):
            if os.path.exists(f"{outcome.prefix}.{rank}"):
                os.remove(f"{outcome.prefix}.{rank}")
        if os.path.exists(outcome.prefix + ".out"):
            os.remove(outcome.prefix + ".out")
