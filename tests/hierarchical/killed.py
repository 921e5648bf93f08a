#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills all ranks of a job during its collectives and checks that none of their shared memory remains. Records remain on purpose and are off.

Usage: killed.py LAUNCHER ARGUMENTS...    a job whose ranks share memory and that runs for a while
"""
import os
import signal
import subprocess
import sys
import time
import uuid

MARK = "TEST_MARK=" + uuid.uuid4().hex
PATIENCE = 60
WINDOW = "memfd:bestride"


def text_of(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""


def marked():
    """The processes of the job: all that have the mark in their environment, except this one."""
    return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid() and MARK in text_of(f"/proc/{pid}/environ").split("\0")]


def until(condition):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def named(folder):
    return sorted(name for name in os.listdir(folder) if "bestride" in name)


def main():
    before = named("/dev/shm")
    name, value = MARK.split("=")
    job = subprocess.Popen(sys.argv[1:], env={**os.environ, name: value, "BESTRIDE_RECORD": "off"}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    sharing = []

    def in_the_middle():
        sharing[:] = [pid for pid in marked() if WINDOW in text_of(f"/proc/{pid}/maps")]
        return len(sharing) >= 4 or job.poll() is not None

    wrong = []
    if not until(in_the_middle) or len(sharing) < 4:
        wrong.append(f"{len(sharing)} ranks share memory, expected 4")
    elsewhere = [pid for pid in sharing if "/dev/shm/bestride" in text_of(f"/proc/{pid}/maps")]
    if elsewhere:
        wrong.append(f"named shared memory in processes {elsewhere}")
    for pid in marked():
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    job.wait()
    if not until(lambda: not marked()):
        wrong.append(f"processes remain: {marked()}")
    if named("/dev/shm") != before:
        wrong.append(f"/dev/shm had {before}, has {named('/dev/shm')}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
