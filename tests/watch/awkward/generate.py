#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py SEED [--language LANGUAGE] [--folder FOLDER]: a correct MPI program that resembles a faulty one.

A program is a beginning, blocks and an ending, chosen at random from the files blocks*.<language>.in. A section of such a file has
a first line

    === KIND NAME key=value, ...

where KIND is beginning, block or ending, and parts that begin with `--- PART`: `body` (without a line of its own), `global`,
`function` (Fortran), `start` (after MPI_Init), `finish` (after the last block), `child` (of a spawned process), `library` (the
source of a plugin). In the text, $name is a value of `let` or the block's number $k. Keys:

    ranks      fewest ranks of MPI_COMM_WORLD
    threads    needs MPI_THREAD_MULTIPLE
    once       at most once in a program
    weight     how often it is chosen, relative to others
    let        random values, `name=expression` of `r` (class Draw) and `size`
    seconds    about how long it takes, an expression of the values of `let`
    value      what the block returns on `rank`; the program prints the sum of all ranks
    code       the exit code

Ways to spend time (slow_*) and to wait for others (meet_*) are in slow.h, meet.h, awkward.F90 and awkward.py; a name ends in _mpi
if the function calls MPI. A phase is as long as docs/watch.md allows a correct program: less than 10 s for a master's only worker,
20 s if fewer ranks wait than are waited for, and 60 s otherwise.
"""
import argparse
import glob
import os
import random
import re
import shutil
import string

HERE = os.path.dirname(os.path.abspath(__file__))
LANGUAGES = ("c", "cpp", "fortran", "python")
BLOCKS = {"c": "c", "cpp": "c cpp", "fortran": "F90", "python": "py"}
WAYS = {"c": "slow.h meet.h", "cpp": "slow.h meet.h", "fortran": "awkward.F90", "python": "awkward.py"}
NAMES = {"c": "program.c", "cpp": "program.cpp", "fortran": "program.F90", "python": "program.py"}
LONG = 40


class Section:  # pylint: disable=too-few-public-methods
    """A beginning, a block or an ending."""

    def __init__(self, heading, text):
        self.kind, self.name, keys = re.match(r"(\w+) (\w+) ?(.*)", heading).groups()
        self.keys = eval(f"dict({keys})", {})  # pylint: disable=eval-used
        pieces = re.split(r"^--- (\w+)\n", "--- body\n" + text, flags=re.M)
        self.parts = {name: text for name, text in zip(pieces[1::2], pieces[2::2]) if text.strip()}


def indented(text):
    return re.sub(r"^(?=.)", "    ", text, flags=re.M)


def sections(language):
    found = []
    for ending in BLOCKS[language].split():
        for path in sorted(glob.glob(os.path.join(HERE, f"blocks*.{ending}.in"))):
            with open(path, encoding="utf-8") as file:
                pieces = re.split(r"^=== (.*)\n", file.read(), flags=re.M)
            found += [Section(*pair) for pair in zip(pieces[1::2], pieces[2::2])]
    return found


def ways(language):
    """The names of the functions slow_* and meet_*."""
    text = ""
    for name in WAYS[language].split():
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            text += file.read()
    return {kind: sorted(set(re.findall(rf"^\s*(?:static \w+|subroutine|integer\(8\) function|def) {kind}_(\w+)\(", text, re.M)))
            for kind in ("slow", "meet")}


class Draw:
    """Random values of a program. `left` is how long the program may still take."""

    def __init__(self, seed, size, threads, functions):
        self.random, self.size, self.threads, self.functions, self.left = random.Random(seed), size, threads, functions, 0

    def i(self, low, high):
        return self.random.randint(low, high)

    def f(self, low, high):
        return round(self.random.uniform(low, high), 3)

    def pick(self, *values):
        return self.random.choice(values)

    def rank(self):
        return self.random.randrange(self.size)

    def pause(self):
        """Seconds of a long phase."""
        return round(min(self.random.choice((0.3, 1, 2, 3, 4.5, 5.5, 7, 9, 11, 13, LONG)) * self.random.uniform(0.9, 1.1), max(self.left, 0.2)), 3)

    def slow(self, *names):
        return self.random.choice(names or self.functions["slow"])

    def slow_outside(self):
        """One without calls of MPI, for callbacks."""
        return self.random.choice([name for name in self.functions["slow"] if not name.endswith("_mpi")])

    def meet(self):
        return self.random.choice([name for name in self.functions["meet"] if self.threads or not name.endswith("_mt")])


class Chosen:
    """A section with its random values; `number` is $k."""

    def __init__(self, section, draw, number):
        self.section = section
        self.values = eval(f"dict({section.keys.get('let', '')})", {"r": draw, "size": draw.size, "min": min})  # pylint: disable=eval-used
        self.known = {**self.values, "k": number, "size": draw.size}
        self.seconds = self.evaluate("seconds")

    def evaluate(self, key, **more):
        return eval(self.section.keys.get(key, "0"), {**self.known, **more})  # pylint: disable=eval-used

    def part(self, name):
        return string.Template(self.section.parts.get(name, "")).substitute(self.known)


class Program:  # pylint: disable=too-many-instance-attributes
    """A program by its seed: `language`, `size` (ranks), `seconds` (about how long it takes), `names` of its sections, `expected`
    (its output) and `code` (its exit code); `write` writes its sources."""

    def __init__(self, seed, language=None):
        choice = random.Random(seed)
        drawn = choice.choices(LANGUAGES, (4, 2, 2, 3))[0]
        self.seed, self.language = seed, language or drawn
        self.size = choice.choices(range(1, 7), (1, 4, 4, 4, 2, 2))[0]
        self.threads = choice.random() < 0.4
        self.optimised, self.f08 = choice.random() < 0.7, choice.random() < 0.5
        draw = Draw(seed, self.size, self.threads, ways(self.language))
        draw.left = LONG if choice.random() < 0.06 else choice.uniform(1, 15)
        all_sections = [section for section in sections(self.language)
                        if section.keys.get("ranks", 1) <= self.size and (self.threads or not section.keys.get("threads"))]

        def choose(kind, number=0):
            usable = [section for section in all_sections if section.kind == kind]
            section = choice.choices(usable, [section.keys.get("weight", 1) for section in usable])[0]
            if section.keys.get("once"):
                all_sections.remove(section)
            chosen = Chosen(section, draw, number)
            draw.left -= chosen.seconds
            return chosen

        self.blocks = [choose("block")]
        self.ending, self.beginning = choose("ending"), choose("beginning")
        while len(self.blocks) < 8 and (draw.left > 1 or len(self.blocks) < 2):
            self.blocks.append(choose("block", len(self.blocks)))
        self.between = [choice.choice(("", "", "barrier", "nap")) for _ in self.blocks]
        chosen = [self.beginning, *self.blocks, self.ending]
        self.seconds = sum(one.seconds for one in chosen)
        self.names = [one.section.name + "".join(f" {value}" for key, value in one.values.items() if key in ("slow", "other", "meet", "t"))
                      for one in chosen]
        self.expected = "".join(f"{one.section.name} {sum(one.evaluate('value', rank=rank) for rank in range(self.size))}\n" for one in self.blocks)
        self.code = self.ending.evaluate("code")

    def parts(self, name, wrap="{}"):
        texts = [(number, one.part(name)) for number, one in enumerate(self.blocks)]
        return "".join(wrap.replace("@k", str(number)).format(text) for number, text in texts if text)

    def source(self):
        names = [one.section.name for one in self.blocks]
        with open(os.path.join(HERE, f"skeleton.{BLOCKS[self.language].split()[0]}.in"), encoding="utf-8") as file:
            skeleton = file.read()
        if self.language == "python":
            call, barrier, nap = "VALUES[{0}] = block_{0}()\n", "WORLD.Barrier()\n", "slow_nap(0.2 * RANK)\n"
            functions = "".join(f"def block_{number}():\n" + indented(one.part("body")) + "\n\n"
                                for number, one in enumerate(self.blocks))
        elif self.language == "fortran":
            call, barrier, nap = "values({0}) = block_{0}()\n", "call MPI_Barrier(MPI_COMM_WORLD, error)\n", "call slow_nap(0.2d0 * rank)\n"
            functions = self.parts("function") + self.parts("body", "integer(8) function block_@k() result(value)\n{}end function\n")
        else:
            call, barrier, nap = "values[{0}] = block_{0}();\n", "MPI_Barrier(WORLD);\n", "slow_nap(0.2 * rank);\n"
            functions = "".join(f"{one.part('global')}static long block_{number}(void) {{\n{one.part('body')}}}\n" for number, one in enumerate(self.blocks))
        calls = "".join(call.format(number) + {"": "", "barrier": barrier, "nap": nap}[between] for number, between in enumerate(self.between))
        text = string.Template(skeleton).substitute(
            functions=functions, calls=calls, globals=self.parts("global"), start=self.parts("start"), finish=self.parts("finish"),
            child=self.parts("child"), count=len(names), last=len(names) - 1, beginning=self.beginning.part("body"),
            ending_global=self.ending.part("global"), ending=self.ending.part("body"), names=", ".join(f'"{name}"' for name in names),
            padded_names=", ".join(f"'{name:40}'" for name in names),
            level="MPI_THREAD_MULTIPLE" if self.threads else "MPI_THREAD_SINGLE")
        # A process of multiprocessing imports the program and has to do nothing.
        return 'if __name__ == "__main__":\n' + indented(text) if self.language == "python" else text

    def write(self, folder):
        """Writes the sources. Returns the commands that build the program (their first word is `c`, `cpp` or `fortran`, for the
        compiler) and the words that start it (the first is `python` for the interpreter)."""
        os.makedirs(folder, exist_ok=True)
        path, program = os.path.join(folder, NAMES[self.language]), os.path.join(folder, "program")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.source())
        if self.language == "python":
            shutil.copy(os.path.join(HERE, "awkward.py"), folder)
            return [], ["python", path]
        optimised = "-O2" if self.optimised else "-O0"
        if self.language == "fortran":
            module = "-DUSE_F08" if self.f08 else "-DUSE_MPI"
            return [["fortran", optimised, "-g", "-fopenmp", "-ffree-line-length-none", module, "-J", folder,
                     os.path.join(HERE, "awkward.F90"), path, "-o", program]], [program]
        commands = [[self.language, optimised, "-g", "-w", "-fopenmp", "-pthread", "-I", HERE, path, "-o", program, "-ldl"]]
        for number, one in enumerate(self.blocks):
            if library := one.part("library"):
                with open(os.path.join(folder, f"plugin_{number}.c"), "w", encoding="utf-8") as file:
                    file.write(library)
                commands.append(["c", "-shared", "-fPIC", os.path.join(folder, f"plugin_{number}.c"), "-o", os.path.join(folder, f"plugin_{number}.so")])
        return commands, [program]


def main():
    parser = argparse.ArgumentParser(description="Prints or writes an awkward program.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--language", choices=LANGUAGES)
    parser.add_argument("--folder", help="write the sources there")
    options = parser.parse_args()
    program = Program(options.seed, options.language)
    print(program.source(), end="")
    print(f"ranks {program.size}, exit code {program.code}, about {program.seconds:.1f} s, output:\n{program.expected}", end="")
    if options.folder:
        for command in program.write(options.folder)[0]:
            print(*command)


if __name__ == "__main__":
    main()
