# SPDX-License-Identifier: Apache-2.0
"""Decides whether a run with the preload library could be a run without it.

A run without the library is repeated only if something differs. Output that is common to all runs without the library must be the same;
lines that vary between them may vary. A line is identified by its text without the numbers.
"""
import collections
import re

NUMBER = re.compile(r"[-+]?\d+(\.\d*)?([eEdD][-+]?\d+)?|[-+]?\.\d+([eEdD][-+]?\d+)?")


def shape(line):
    return NUMBER.sub("#", line)


def differences(bare, other):
    """Descriptions of the differences from all bare runs; empty if there are none."""
    if all(run.status not in (0, "hang") for run in bare):  # which rank fails first, and the output of the others, is random
        return [] if other.status not in (0, "hang") else [f"exit status {other.status}, bare {bare[0].status}"]
    found = []
    if other.status not in {run.status for run in bare}:
        found.append(f"exit status {other.status}, bare {' or '.join(sorted({str(run.status) for run in bare}))}")
    if any(run.output == other.output for run in bare):
        pass
    else:
        counts = [collections.Counter(run.output) for run in bare]
        always = counts[0]
        for count in counts[1:]:
            always = always & count
        varying = {shape(line) for count in counts for line in count - always}
        mine = collections.Counter(other.output)
        found += [f"missing: {line}" for line in (always - mine).elements() if shape(line) not in varying]
        found += [f"only here: {line}" for line in (mine - always).elements() if shape(line) not in varying]
    names = [dict(run.files) for run in bare]
    mine = dict(other.files)
    for name in sorted(set(mine).union(*names)):
        seen = {files.get(name) for files in names}
        if len(seen) == 1 and mine.get(name) not in seen:
            found.append(f"file {name} {'is missing' if name not in mine else 'has other bytes' if None not in seen else 'is new'}")
        elif (name in mine) != any(seen):
            found.append(f"file {name} {'is new' if name in mine else 'is missing'}")
    return found
