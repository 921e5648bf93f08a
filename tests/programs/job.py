# SPDX-License-Identifier: Apache-2.0
"""Runs one MPI job in a separate folder, ends it at its time limit, and collects the files that it wrote.

Every rank's stdout and stderr go to separate files, so that the order of ranks does not matter. Every process of a job has a variable with
a unique value, by which processes that outlive the job are found in /proc and ended by pid.
"""
import dataclasses
import fnmatch
import hashlib
import itertools
import os
import re
import select
import shutil
import signal
import subprocess
import time

TAG = "PROGRAMS_JOB"  # not a BESTRIDE_ name, because the library reports unknown ones
numbers = itertools.count(1)
BLANKS = re.compile(r"  +")
ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclasses.dataclass(frozen=True)
class Case:
    """One command of a suite. `inputs`: files or folders that are linked into the working folder, or (name, text) pairs. `compare`:
    "output" compares exit status, output and `produced` files; "status" ignores the output; "counts" compares the matches of `count` in it.
    `avoid`: modes in which it does not run."""
    name: str
    ranks: int
    command: tuple
    inputs: tuple = ()
    produced: tuple = ()
    mask: tuple = ()
    compare: str = "output"
    count: str = ""
    limit: float = 120
    environment: tuple = ()
    avoid: tuple = ()


@dataclasses.dataclass(frozen=True)
class Outcome:
    status: object  # the exit status, or "hang"
    output: tuple  # masked lines, each after the name of the rank's file
    files: tuple  # (name, digest)
    folder: str
    seconds: float


def tagged(tag):
    """Processes with this tag in their environment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if tag.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def send(pid, number, group=False):
    try:
        (os.killpg if group else os.kill)(pid, number)
    except ProcessLookupError:
        pass


def stacks(tag, path):
    """Writes the stacks of all processes of a job, if gdb is installed."""
    if not shutil.which("gdb"):
        return
    with open(path, "w", encoding="utf-8") as file:
        for pid in tagged(tag):
            with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                if name.read().strip() in ("mpiexec.hydra", "hydra_pmi_proxy"):
                    continue
            file.flush()
            subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all bt"], stdout=file, stderr=subprocess.DEVNULL,
                           stdin=subprocess.DEVNULL, timeout=60, check=False)


def end(started, tag):
    """Ends the process group, and processes of the job that left it."""
    send(started.pid, signal.SIGTERM, group=True)
    try:
        started.wait(5)
    except subprocess.TimeoutExpired:
        pass
    send(started.pid, signal.SIGKILL, group=True)
    for pid in tagged(tag):
        send(pid, signal.SIGKILL)
    started.wait()


def wait(started, limit):
    """As Popen.wait(limit), which looks for the end at intervals of up to 50 ms and so rounds the times that are measured."""
    process = os.pidfd_open(started.pid)
    try:
        ended, _, _ = select.select([process], [], [], limit)
    finally:
        os.close(process)
    if not ended:
        raise subprocess.TimeoutExpired(started.args, limit)
    return started.wait()


def prepare(case, folder):
    shutil.rmtree(folder, ignore_errors=True)
    work = f"{folder}/work"
    os.makedirs(work)
    for entry in case.inputs:
        if isinstance(entry, tuple):
            with open(f"{work}/{entry[0]}", "w", encoding="utf-8") as file:
                file.write(entry[1])
        else:
            os.symlink(entry, f"{work}/{os.path.basename(entry)}")
    return work


def launch(case, environment, folder, scale=1.0):
    """Runs the case with these environment variables and returns the outcome."""
    work = prepare(case, folder)
    tag = f"{TAG}={os.getpid()}.{next(numbers)}"
    everything = dict(os.environ)
    everything.pop("LD_PRELOAD", None)
    for name in [name for name in everything if name.startswith("BESTRIDE_")]:
        del everything[name]
    everything.update(dict([tag.split("=")]))
    everything.update(dict(case.environment))
    words = ["mpiexec.hydra", "-n", str(case.ranks), "-outfile-pattern", f"{folder}/%r.out", "-errfile-pattern", f"{folder}/%r.err"]
    for name, value in environment.items():  # the launcher itself is not preloaded
        words += ["-genv", name, value]
    begin = time.monotonic()
    with open(f"{folder}/launcher", "wb") as launcher:
        started = subprocess.Popen([*words, *case.command], cwd=work, env=everything, stdin=subprocess.DEVNULL, stdout=launcher,
                                   stderr=launcher, start_new_session=True)
        try:
            status = wait(started, case.limit * scale)
        except subprocess.TimeoutExpired:
            status = "hang"
            try:
                stacks(tag, f"{folder}/stacks")
            except (OSError, subprocess.SubprocessError):
                pass
        finally:
            seconds = time.monotonic() - begin
            end(started, tag)
    return Outcome(status, tuple(read_output(case, folder)), tuple(read_files(case, work)), folder, seconds)


def read_output(case, folder):
    """The output lines. Addresses, the working folder, process ids, and the suite's timings are masked."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith((".out", ".err")):
            continue
        with open(f"{folder}/{name}", encoding="utf-8", errors="replace") as file:
            text = file.read()
        text = ADDRESS.sub("ADDRESS", text.replace(folder, "FOLDER"))
        if case.compare == "counts":
            text = "\n".join(match.group(0) for match in re.finditer(case.count, text, re.M))
        for pattern in case.mask:
            text = re.sub(pattern, "MASKED", text, flags=re.M)
        if case.compare != "status" or name.endswith(".err"):
            for line in text.splitlines():
                if case.compare != "status" or line.startswith("bestride:"):
                    yield f"{name}: {BLANKS.sub(' ', line.rstrip())}"


def read_files(case, work):
    for root, _, names in sorted(os.walk(work)):
        for name in sorted(names):
            path = os.path.join(root, name)
            relative = os.path.relpath(path, work)
            if not os.path.islink(path) and any(fnmatch.fnmatch(relative, pattern) for pattern in case.produced):
                with open(path, "rb") as file:
                    yield relative, hashlib.file_digest(file, "sha256").hexdigest()
