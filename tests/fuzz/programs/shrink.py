# SPDX-License-Identifier: Apache-2.0
"""Reduces a failing program: removes steps, then ranks, and lowers knobs, as long as the program still fails."""
import os
import re
import subprocess

from compare import compare, wrong
from launch import BARE

WAYS = 11  # of spelling.hpp
KNOBS = (("spell", 0), ("pend", 0), ("pmpi", 0), ("types", 0), ("types", 1), ("types", 2), ("size", 0), ("size", 1), ("size", 2), ("thread", 0))


class Shrinker:
    def __init__(self, launcher, mode, tries=3):
        self.launcher, self.mode, self.tries, self.launches = launcher, mode, tries, 0
        self.path = os.path.join(launcher.folder, "shrinking.txt")

    def failure(self, header, steps):
        """The Difference that this program shows, or None. The program must succeed bare; a sporadic failure gets several tries.

        `steps` may contain further "program" lines: several programs in one launch."""
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join([header, *steps]) + "\n")
        ranks = int(re.search(r"ranks=(\d+)", header).group(1))
        arguments = ["--program", self.path]
        self.launches += 1
        bare = self.launcher.run(BARE, ranks, arguments)
        if not bare.ended:
            self.launcher.forget(bare)
            return None
        found = None
        for _ in range(self.tries):
            other = self.launcher.run(self.mode, ranks, arguments)
            self.launches += 1
            found = compare(bare, other) or next(wrong(other), None)
            if found and other.stacks:
                found.text += "\n" + other.stacks
            self.launcher.forget(other)
            if found:
                break
        self.launcher.forget(bare)
        return found

    def shrink(self, text):
        """(shortest text, its failure), or the original text and None if the failure does not occur again."""
        header, *steps = [line for line in text.splitlines() if line.strip()]
        self.ranks = header.split("ranks=")[1].split()[0]
        found = self.failure(header, steps)
        if not found:
            return text, None
        steps, found = self.remove(header, steps, found)
        for ranks in range(2, int(self.ranks)):
            fewer = re.sub(r"ranks=\d+", f"ranks={ranks}", header)
            if again := self.failure(fewer, steps):
                header, found = fewer, again
                break
        steps, found = self.remove(header, steps, found)
        for knob in ("threads", "buffer"):
            off = re.sub(rf"{knob}=\d+", f"{knob}=0", header)
            if off != header and (again := self.failure(off, steps)):
                header, found = off, again
        for number in range(len(steps)):
            if steps[number].startswith("program "):
                continue
            for knob, value in KNOBS:
                now = int(re.search(rf"{knob}=(\d+)", steps[number]).group(1))
                if value >= now:
                    continue
                lower = re.sub(rf"\b{knob}=\d+", f"{knob}={value}", steps[number])
                if again := self.failure(header, [*steps[:number], lower, *steps[number + 1:]]):
                    steps[number], found = lower, again
            for way in range(WAYS):
                now = int(re.search(r"spell=(\d+)", steps[number]).group(1))
                fewer = re.sub(r"spell=\d+", f"spell={now & ~(1 << way)}", steps[number])
                if fewer != steps[number] and (again := self.failure(header, [*steps[:number], fewer, *steps[number + 1:]])):
                    steps[number], found = fewer, again
        return "\n".join([header, *steps]) + "\n", found

    def remove(self, header, steps, found):
        """Delta debugging: halves, quarters, ... single steps."""
        size = max(1, len(steps) // 2)
        while size >= 1:
            at = 0
            while at < len(steps) and len(steps) > 1:
                fewer = steps[:at] + steps[at + size:]
                again = self.failure(header, fewer) if fewer else None
                if again:
                    steps, found = fewer, again
                else:
                    at += size
            size //= 2
        return steps, found


def check_source(launcher, mode, path, ranks, compiler):
    """Compiles an emitted program and runs it bare and in the mode. Returns a description and whether it fails only in the mode."""
    binary = path + ".bin"
    done = subprocess.run([compiler, "-O1", "-w", "-pthread", "-o", binary, path], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        return "it does not compile:\n" + done.stderr[-2000:], False
    bare, other = launcher.run(BARE, ranks, [], program=binary), launcher.run(mode, ranks, [], program=binary)
    shows = bare.ended and not other.ended
    text = f"bare: {'ok' if bare.ended else bare.status}; {mode.name}: {'ok' if other.ended else other.status}"
    os.remove(binary)
    return text, shows
