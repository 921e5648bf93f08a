# SPDX-License-Identifier: Apache-2.0
"""Splits traces into programs and steps and compares them."""
import re


class Difference:
    def __init__(self, kind, index, rank, step, text):
        self.kind, self.index, self.rank, self.step, self.text = kind, index, rank, step, text

    def __str__(self):
        return f"{self.kind} in program {self.index}, rank {self.rank}, step {self.step}: {self.text}"


def programs_of(trace):
    """[(index, [(step, items)])], without the lines about resources."""
    programs = []
    for line in trace.splitlines():
        if line.startswith("= "):
            programs.append((int(line[2:]), []))
        elif line.startswith("> ") and programs:
            programs[-1][1].append([line[2:], ""])
        elif programs and programs[-1][1] and not line.startswith("#") and line != "done":
            programs[-1][1][-1][1] += line
    return programs


STALE = "-999"  # fuzz_stale of common.h


def alike(mine, theirs):
    """Whether two lines are the same, except for error classes that MPICH loses."""
    if mine == theirs or STALE not in mine + theirs:
        return mine == theirs
    words = [re.findall(r"-?\w+|\W", line) for line in (mine, theirs)]
    return len(words[0]) == len(words[1]) and all(x == y or STALE in (x, y) for x, y in zip(*words))


def first_words(mine, theirs):
    """The first items in which two lines differ."""
    for x, y in zip(mine.split(), theirs.split()):
        if not alike(x, y):
            return f"{x} instead of {y}"
    return f"{len(mine.split())} items instead of {len(theirs.split())}"


def compare(bare, other):
    """The first difference of two launches, or None."""
    found = []
    for rank in range(bare.ranks):
        expected, got = programs_of(bare.trace(rank)), programs_of(other.trace(rank))
        for (index, steps), (_, seen) in zip(expected, got):
            lines = [(step, want, have[1]) for (step, want), have in zip(steps, seen) if not alike(have[1], want)]
            # An incomplete last line of a launch that did not end is not a difference.
            if lines and not (not other.ended and (index, seen) == got[-1] and lines[0][0] == seen[-1][0]):
                step, want, have = lines[0]
                found.append(Difference("difference", index, rank, step, first_words(have, want)))
                break
    if found:
        return min(found, key=lambda one: one.index)
    if not other.ended:
        last = [programs_of(other.trace(rank)) for rank in range(bare.ranks)]
        places = [(p[-1][0], p[-1][1][-1][0] if p[-1][1] else "start") if p else (-1, "start") for p in last]
        rank = min(range(bare.ranks), key=lambda r: places[r][0])
        kind = "hang" if other.status == "hang" else "crash"
        where = "; ".join(f"rank {r} in {place[1]}" for r, place in enumerate(places))
        return Difference(kind, places[rank][0], rank, places[rank][1], where)
    return None


def wrong(outcome):
    """The errors that the executor itself found, as Differences."""
    for rank in range(outcome.ranks):
        for index, steps in programs_of(outcome.trace(rank)):
            for step, seen in steps:
                match = re.search(r"WRONG:.*", seen)
                if match:
                    yield Difference("wrong", index, rank, step, match.group(0)[:200])


RESOURCES = re.compile(r"^# \d+ resident (\d+) descriptors (\d+)", re.M)


def growth(outcome):
    """The growth (KiB, descriptors) of a launch from its first quarter to its end, on the rank with the largest growth."""
    kib, descriptors = 0, 0
    for rank in range(outcome.ranks):
        points = [(int(a), int(b)) for a, b in RESOURCES.findall(outcome.trace(rank))]
        if len(points) >= 2:
            kib, descriptors = max(kib, points[-1][0] - points[0][0]), max(descriptors, points[-1][1] - points[0][1])
    return kib, descriptors
