#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rails in calibration and in a job: two hosts with three links, of which the MPI library uses the slow one by default. Calibration finds that the
other two are faster, and a job without settings uses both. If a host cannot be reached over one of them, calibration removes them again.

The slow link has 5 Mbit/s, the others are as fast as memory, so the difference is visible on a busy machine, too. The test counts bytes and
does not compare times.

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
COUNT = 200_000  # 4-byte numbers of each rank
RAILS = "data0,data1"
# Imitates an MPI library that uses one link by default; a link that is given overrides it.
LAUNCHER = """#!/bin/bash
ranks=$2; shift 2
case "$*" in *"--rails data"*) device=;; *) device=data2;; esac
exec {run} -d "$device" -p $((ranks / 2)) "$@"
"""


def in_namespace(bed, name, *command):
    subprocess.run(["ip", "netns", "exec", f"{bed.name}-{name}", *command], check=True, stdin=subprocess.DEVNULL)


def calibrated(bed, command, folder):
    """The output of the command, and the rails in the profile that it wrote."""
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
    """{device: bytes sent by host 0} in an allgather with two ranks per host."""
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
            wrong.append("calibration does not keep faster rails")
        block = COUNT * 4  # bytes that one rank sends
        links = sent(bed, library, program, folder)
        print("without settings:", links)
        if not all(0.9 * block < links[device] < 1.2 * block for device in RAILS.split(",")) or links["data2"] > block / 10:
            wrong.append("without settings, a job does not send each rank's bytes over its rail")
        links = sent(bed, library, program, folder, "BESTRIDE_NICS=data0")
        print("BESTRIDE_NICS=data0:", links)
        if links["data1"] > block / 10:
            wrong.append("BESTRIDE_NICS does not override the profile")
        # The link stays up, but leads nowhere.
        in_namespace(bed, "sw", "ip", "link", "set", "p1-1", "nomaster")
        said, rails = calibrated(bed, command, folder)
        if rails is not None or f"rails {RAILS} are not used: a job with them " not in said:
            wrong.append("calibration keeps rails over which ranks cannot connect")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
