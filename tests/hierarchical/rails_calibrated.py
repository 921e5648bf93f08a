#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rails from calibration to a job: two hosts with three links, of which the MPI library chooses the slow one by default. Calibration finds that the
other two are faster, and a job without settings uses both. If a host can't be reached over one of them, calibration removes them again.

The slow link has 5 Mbit/s, the others the speed of memory, so that a busy machine does not hide the difference. The test counts bytes and
compares no times.

Usage: rails_calibrated.py LIBRARY COMMAND PROGRAM
"""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "testbed"))
from bed import Bed, reason_against, tool  # pylint: disable=wrong-import-position

SKIPPED = 77
COUNT = 200_000  # numbers of 4 bytes of each rank
RAILS = "data0,data1"
# In the place of a library that takes one link by itself; a link that is named goes before it.
LAUNCHER = """#!/bin/bash
ranks=$2; shift 2
case "$*" in *"--rails data"*) device=;; *) device=data2;; esac
exec {run} -d "$device" -p $((ranks / 2)) "$@"
"""


def in_namespace(bed, name, *command):
    subprocess.run(["ip", "netns", "exec", f"{bed.name}-{name}", *command], check=True, stdin=subprocess.DEVNULL)


def calibrated(bed, command, folder):
    """What the command said and the rails that it wrote."""
    launcher, profile = os.path.join(folder, "launcher"), os.path.join(folder, "profile.json")
    with open(launcher, "w", encoding="utf-8") as file:
        file.write(LAUNCHER.format(run=tool("run.sh")))
    os.chmod(launcher, 0o755)
    done = subprocess.run([command, "calibrate", "--quick", "--budget", "1", "--only", "collectives", "--nics", RAILS, "--mpiexec", launcher, "--output", profile],
                          env={**os.environ, "TB": bed.name}, text=True, capture_output=True, timeout=150, check=False, stdin=subprocess.DEVNULL)
    print(done.stdout, done.stderr, flush=True)
    with open(profile, encoding="utf-8") as file:
        return done.stdout, json.load(file).get("rails")


def sent(bed, library, program, folder, *settings):
    """{device: bytes of host 0} of an allgather by two ranks a host."""
    words = [word for setting in ("BESTRIDE_ALL_RANKS=1", "BESTRIDE_COLLECTIVES=hierarchical", f"BESTRIDE_PROFILE={folder}/profile.json", *settings)
             for word in ("-e", setting)]
    links, _ = bed.counted("-d", "", "-p", 2, "-l", library, *words, program, COUNT, 0)
    return {device: out for (host, device), (out, _) in links.items() if host == "h0"}


def main():
    reason = reason_against()
    if reason:
        print(reason)
        return SKIPPED
    library, command, program = map(os.path.abspath, sys.argv[1:])
    wrong = []
    with Bed(2, "none", 3) as bed, tempfile.TemporaryDirectory() as folder:
        for host in (0, 1):
            in_namespace(bed, f"h{host}", "tc", "qdisc", "replace", "dev", "data2", "root", "tbf", "rate", "5mbit", "burst", "80kb", "limit", "2mb")
        said, rails = calibrated(bed, command, folder)
        if rails != RAILS.split(",") or f"rails {RAILS} are " not in said:
            wrong.append("rails that are faster are not kept")
        block = COUNT * 4  # what one rank sends
        links = sent(bed, library, program, folder)
        print("told nothing:", links)
        if not all(0.9 * block < links[device] < 1.2 * block for device in RAILS.split(",")) or links["data2"] > block / 10:
            wrong.append("a job that is told nothing does not send each rank's bytes over its rail")
        links = sent(bed, library, program, folder, "BESTRIDE_NICS=data0")
        print("told one:", links)
        if links["data1"] > block / 10:
            wrong.append("what the user names does not go before the profile")
        # Still up and connected, but to nothing.
        in_namespace(bed, "sw", "ip", "link", "set", "p1-1", "nomaster")
        said, rails = calibrated(bed, command, folder)
        if rails is not None or f"rails {RAILS} are not used: a job with them " not in said:
            wrong.append("rails over which ranks can't connect are kept")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
