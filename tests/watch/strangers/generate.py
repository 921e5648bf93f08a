#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates a program with one fault from a number, as someone else may have written it: generate.py SEED FOLDER.

The folder gets the sources and program.json: how to build and run it, and which verdicts are right. A program combines a
language, a communication pattern (skeletons.py), a fault in its communication (mutations.py) or outside it (idioms.py), the
place of that fault, and options of the compiler. It notes the time of its fault in the file fault.time.
"""
import ast
import json
import os
import random
import sys

import c_programs
import fortran_programs
import mutations
import python_programs
from idioms import HANG, IDIOMS
from skeletons import EVEN, SKELETONS, WORKERS_ONLY

NAMES = ("assemble_matrix", "update_cells", "apply_boundary", "compute_flux", "refine_mesh", "read_forcing", "sort_particles", "integrate_orbits",
         "load_table", "limit_slopes", "evaluate_kernel", "project_velocity", "sample_walkers", "balance_patches", "fill_spectrum", "trace_rays")
WRITERS = {"c": c_programs, "c++": c_programs, "fortran": fortran_programs, "python": python_programs}
# Faults of a program as a whole.
SPECIAL = {"late MPI_Init": HANG, "no MPI_Finalize": {"crash"}, "none": set()}
FAULTS = [*IDIOMS, *mutations.MUTATIONS, *SPECIAL]


class Choice:
    """All random choices of a program."""

    def __init__(self, seed, languages, numpy):
        self.random = random.Random(seed)
        self.seed, self.fault = seed, FAULTS[seed % len(FAULTS)]
        self.ranks = self.random.choice((4, 4, 4, 4, 3, 2))
        self.idiom = IDIOMS.get(self.fault)
        possible = [name for name in languages if not self.idiom or self.idiom.in_language(name)]
        if self.fault == "swallowed_exception":
            possible = [name for name in languages if name in ("c++", "python")]
        if not possible:
            raise LookupError(f"{self.fault} exists in none of the languages")
        self.language = self.random.choice(possible)
        self.names = self.random.sample(NAMES, 3)
        self.debug, self.optimise = self.random.random() < 0.7, self.random.choice(("-O0", "-O1", "-O2", "-O2", "-O3"))
        self.binding = self.random.choice(("mpif.h", "mpi", "mpi_f08"))
        self.step = self.random.randrange(3, 14)
        self.through_module = self.random.random() < 0.4  # python -m mpi4py
        self.numpy = self.random.random() < 0.5 and numpy
        self.in_second_thread = self.language in ("c", "c++") and self.fault != "late MPI_Init" and random.Random(f"{seed} thread").random() < 0.15
        self.place, self.expectation, self.pattern, self.tree, self.culprit = "main", None, "", None, 0
        self.choose_pattern()
        used = {node.func.id for node in ast.walk(self.tree) if isinstance(node, ast.Call)}
        self.objects = self.random.random() < 0.4 and self.language == "python" and (self.expectation is None or self.expectation.objects) and \
            not used & {"isend", "issend", "irecv", "recv_any", "recv_order"}  # these have no form with objects
        if self.idiom:
            self.choose_place()
        self.n = 60000 if self.expectation and self.expectation.big else self.random.choice((8, 100, 500))
        if self.fault == "wrong_count" and random.Random(f"{seed} size").random() < 0.5:
            self.n = 12000  # Bestride carries such collective calls out, and reports the error
        self.pace = self.expectation.pace if self.expectation and self.expectation.pace else self.random.choice((2, 10, 30))

    def choose_pattern(self):
        """Takes the first pattern in random order that can have the fault; some faults need more than two ranks."""
        for ranks in dict.fromkeys((self.ranks, 4)):
            self.ranks, patterns = ranks, list(SKELETONS)
            self.random.shuffle(patterns)
            if any(self.fits(pattern) for pattern in patterns):
                return
        raise LookupError(f"no pattern can have {self.fault}")

    def fits(self, pattern):
        if self.ranks % 2 and pattern in EVEN or self.idiom and self.idiom.only_rank == 0 and pattern in WORKERS_ONLY:
            return False
        self.pattern, self.tree = pattern, ast.parse(SKELETONS[pattern])
        self.culprit = self.random.randrange(pattern in WORKERS_ONLY, self.ranks)
        if self.idiom and self.idiom.only_rank is not None:
            self.culprit = self.idiom.only_rank
        if pattern == "master_worker":  # a worker may get few jobs
            self.step = min(self.step, 4)
        if self.fault in mutations.MUTATIONS:
            self.expectation = getattr(mutations.Mutator(self.tree, self.random, self.ranks, self.step), self.fault)()
            if not self.expectation:
                return False
            self.culprit = self.expectation.culprit
        return True

    def choose_place(self):
        places = [place for place in WRITERS[self.language].PLACES[self.language] if place not in self.idiom.no_place]
        # All ranks have to reach the work at once for a reduction there.
        if self.pattern in WORKERS_ONLY | {"pipeline", "ensemble", "rows_and_columns"} and "op" in places:
            places.remove("op")
        self.place = self.random.choice(places)

    @property
    def classes(self):
        if self.expectation:
            # mpi4py makes messages of collective calls with objects, so one that is left out may appear as a missing message.
            return self.expectation.classes | ({"unmatched message"} if self.objects and "mismatch" in self.expectation.classes else set())
        return self.idiom.classes if self.idiom else SPECIAL[self.fault]


def generate(seed, folder, languages=("c", "c++", "fortran", "python"), python=sys.executable, numpy=False):  # pylint: disable=too-many-locals
    """Writes the program and returns the content of program.json. `numpy`: the interpreter has it."""
    choice = Choice(seed, languages, numpy)
    os.makedirs(folder, exist_ok=True)
    files, build, run, functions, marks = WRITERS[choice.language].write(choice, python)
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    classes, expectation, debug = choice.classes, choice.expectation, choice.debug or choice.language == "python"
    # A fault in communication shows where ranks wait, and a function without debugging information may have been inlined.
    if expectation or not debug and choice.optimise != "-O0":
        functions = [*dict.fromkeys([*functions, *(("program", "second_thread") if choice.in_second_thread else ("main",))])]
    else:
        functions = functions[:1]
    program = {
        "seed": seed, "fault": choice.fault, "language": choice.language, "pattern": choice.pattern, "place": choice.place, "ranks": choice.ranks,
        "classes": sorted(classes), "culprit": choice.culprit, "also_right": sorted(expectation.ranks) if expectation else [],
        "may_end": bool(expectation and expectation.may_end), "debug": debug, "optimise": choice.optimise,
        "judge_place": bool(classes) and choice.fault not in ("late MPI_Init", "no MPI_Finalize") and (not choice.idiom or choice.idiom.place),
        "functions": functions, "marks": marks, "build": build, "run": run, "standard_input": choice.fault == "standard input",
        # A rank that has not called MPI_Init is reported after 60 s.
        "limit": 80 if choice.fault == "late MPI_Init" else 40,
    }
    with open(os.path.join(folder, "program.json"), "w", encoding="utf-8") as file:
        json.dump(program, file, indent=1)
    return program


if __name__ == "__main__":
    print(json.dumps(generate(int(sys.argv[1]), sys.argv[2]), indent=1))
