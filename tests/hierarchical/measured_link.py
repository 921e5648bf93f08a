#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs without a profile on three hosts of two ranks each: they measure the link in MPI_Init, so that over a slow link an allgather sends each byte
once, which the built-in costs leave to the MPI library. If a rank can't take part in the measurement, the built-in costs count on all ranks.

The test counts bytes and does not compare times.

Usage: measured_link.py LIBRARY PROGRAM
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "testbed"))
from bed import Bed, reason_against  # pylint: disable=wrong-import-position

SKIPPED = 77
COUNT = 200_000  # 4-byte numbers of each rank
MBIT = 100


def main():
    reason = reason_against()
    if reason:
        print(reason)
        return SKIPPED
    library, program = map(os.path.abspath, sys.argv[1:])
    wrong = []
    bound = 2 * 4 * COUNT * 4  # bytes that a host must receive in the program's two allgathers: those of the four ranks on other hosts
    with Bed(3, f"{MBIT}mbit") as bed:

        def run(*settings):
            """The most bytes that a host received, over the lower bound; the MB/s that the job measured, or None."""
            words = [word for setting in ("BESTRIDE_ALL_RANKS=1", "BESTRIDE_CACHE_BYTES=0", "BESTRIDE_LOG=info", *settings)
                     for word in ("-e", setting)]
            links, text = bed.counted("-p", 2, "-l", library, *words, program, COUNT, 0, errors=subprocess.STDOUT)
            said = re.search(r"the link between the first two nodes carries ([0-9.e+]+) MB/s", text)
            ratio = max(received for _, received in links.values()) / bound
            print(settings, f"{ratio:.2f} of the lower bound, measured:", said and said[0], flush=True)
            return ratio, said and float(said[1])

        ratio, measured = run()
        # On a busy machine a burst that passes at once (80 kB) makes the link look faster, by a factor of 20 at most.
        if not measured or not MBIT / 8 / 20 < measured < MBIT / 8 * 20:
            wrong.append("the link was not measured as it is")
        if ratio > 1.12:
            wrong.append("over a slow link the allgather does not go through the hierarchy")
        for settings in (("BESTRIDE_FORCE=fail=link",), ("BESTRIDE_COLLECTIVES=library",)):
            ratio, measured = run(*settings)
            if measured or ratio < 1.18:
                wrong.append(f"{settings}: measured, or through the hierarchy")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
