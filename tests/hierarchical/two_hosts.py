#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random collectives over two hosts of two ranks each with a link of 1 Gbit/s, with block and with round-robin placement; then sums of
floating-point numbers, which the MPI library adds in the same order as Bestride only with block placement.

Usage: two_hosts.py LIBRARY CALL_COUNTER RANDOM SUM_ORDER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "testbed"))
from bed import Bed, reason_against  # pylint: disable=wrong-import-position

SECONDS = 6
SKIPPED = 77


def main():
    reason = reason_against()
    if reason:
        print(reason)
        return SKIPPED
    library, call_counter, program, sums = map(os.path.abspath, sys.argv[1:])
    with Bed(2, "1gbit") as bed:
        for nodes, order, options in (("0011", "same", ()), ("0101", "different", ("-c",))):
            settings = {"BESTRIDE_ALL_RANKS": 1, "BESTRIDE_COLLECTIVES": "hierarchical", "TEST_NODES": nodes, "TEST_EXPECT": "hierarchical",
                        "TEST_ORDER": order}
            words = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
            print(nodes, bed.call("run.sh", *options, "-p", 2, "-l", library, "-l", call_counter, *words, program, "--seconds", SECONDS), flush=True)
            print(nodes, bed.call("run.sh", *options, "-p", 2, "-l", library, "-l", call_counter, *words, sums, "--only", "forms"), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
