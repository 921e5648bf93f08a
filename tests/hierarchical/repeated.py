#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the bytes between two hosts of two ranks when an allgather is repeated, plain and quantized: only the first call and the one with
changed data may send any.

Usage: repeated.py LIBRARY PROGRAM
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "testbed"))
from bed import Bed, reason_against  # pylint: disable=wrong-import-position

SKIPPED = 77
COUNT = 200_000
REPETITIONS = 20
# Retransmitted packets count, too, so the minimum over a few runs is the number of bytes of the collective.
RUNS = 3
# The bytes that the first call and the changed call send, as a fraction of a block. Without quantization, the changed call sends a delta.
SENT = {"off": 1 + 1 / 16, "int8": 2 * (256 + 4) / (256 * 4)}


def main():
    reason = reason_against()
    if reason:
        print(reason)
        return SKIPPED
    library, program = map(os.path.abspath, sys.argv[1:])
    good = True
    with Bed(2, "1gbit") as bed:
        for codes, share in SENT.items():
            # The link is not measured, because that sends a varying number of bytes.
            settings = {"BESTRIDE_ALL_RANKS": 1, "BESTRIDE_COLLECTIVES": "hierarchical", "BESTRIDE_QUANTIZE": codes, "BESTRIDE_FORCE": "fail=link"}
            words = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
            needed = 2 * COUNT * 4 * share  # two ranks per host
            sent = {0: [], REPETITIONS: []}
            for _ in range(RUNS):
                for repetitions, bytes_sent in sent.items():
                    links, _ = bed.counted("-p", 2, "-l", library, *words, program, COUNT, repetitions)
                    bytes_sent.append(max(out for out, _ in links.values()))
                once, repeated = (min(bytes_sent) for bytes_sent in sent.values())
                right = 0.9 * needed < once < 1.1 * needed and repeated - once < needed / 100
                if right:
                    break
            good = good and right
            print(f"{codes}: expected {needed:.0f} bytes, sent {once}, and {repeated - once} more for {REPETITIONS} repetitions"
                  f"{'' if right else ': wrong'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
