#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command and checks, by the reports, that contiguous messages of 16 KiB and more are respelled between ranks that share a cache, but not with
BESTRIDE_FORCE=contiguous=forward, and not if the ranks do not know each other.

  near_ranks.py -- command...
"""
import json
import os
import subprocess
import sys
import tempfile

SYSTEM = "/sys/devices/system/cpu"
CALLS = {"MPI_Send", "MPI_Recv", "MPI_Isend", "MPI_Irecv", "MPI_Sendrecv", "MPI_Issend", "MPI_Send_init", "MPI_Recv_init"}


def processors_of(text):
    """The numbers of a list such as "0-3,8"."""
    ends = [part.split("-") for part in text.strip().split(",")]
    return {processor for end in ends for processor in range(int(end[0]), int(end[-1]) + 1)}


def sharing_a_cache():
    """The processors of this process that share the last-level cache of its first one."""
    allowed = os.sched_getaffinity(0)
    folder = f"{SYSTEM}/cpu{min(allowed)}/cache"
    levels = {}
    for name in os.listdir(folder):
        if name.startswith("index"):
            with open(f"{folder}/{name}/level", encoding="ascii") as level, open(f"{folder}/{name}/shared_cpu_list", encoding="ascii") as shared:
                levels[int(level.read())] = processors_of(shared.read())
    return allowed & levels[max(levels)]


def respelled(command, forced):
    """The calls with respelled contiguous messages, and the least size of one."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        environment = {**os.environ, "BESTRIDE_REPORT": "1", "BESTRIDE_REPORT_FILE": path, "BESTRIDE_FORCE": forced}
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
        with open(path, encoding="utf-8") as file:
            lines = [line for line in json.load(file)["lines"] if line["strategy"] == "respell"]
    return {line["call"] for line in lines}, min((line["bytes"] // line["calls"] for line in lines), default=0)


def main(dashes, *command):
    os.sched_setaffinity(0, sharing_a_cache())
    calls, least = respelled(command, "contiguous=near")
    never, _ = respelled(command, "contiguous=forward")
    unknown, _ = respelled(command, "contiguous=near,fail=presence")
    print(f"respelled: {sorted(calls)}, from {least} B on; with BESTRIDE_FORCE=contiguous=forward: {sorted(never)}; without sockets: {sorted(unknown)}")
    return 0 if calls >= CALLS and least >= 16384 and not never and not unknown else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
