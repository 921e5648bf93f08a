#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the table of functions against the counts of MPI-5.0 and against every function that an installed MPI library declares or exports.

  check_table.py FUNCTIONS_TSV counts
  check_table.py FUNCTIONS_TSV header DIRECTORY...     every function declared in the directories' mpi*.h
  check_table.py FUNCTIONS_TSV library PATH            every function exported by the MPI library of that path
"""
import glob
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "interpose", "preload"))
import generate

# Functions that are not in the table, so that calls go directly to the MPI library. Reasons:
REMOVED = """MPI_Address MPI_Errhandler_create MPI_Errhandler_get MPI_Errhandler_set MPI_Type_extent MPI_Type_hindexed
    MPI_Type_hvector MPI_Type_lb MPI_Type_struct MPI_Type_ub"""  # removed from MPI in 3.0; they have no buffer
CONVERSION = r"MPI_[A-Z][a-z]+_(c2f|f2c|c2f08|f082c|f082f|f2f08)"  # of handles and statuses between C and one Fortran compiler
NO_FUNCTION = r"P?MPI_(T_)?[A-Z][A-Z0-9_]*"  # constants and callbacks: written in capitals


# The groups of functions that carry a buffer and a datatype.
CARRYING = r"(p2p|collective|neighborhood)-\w+|io|one-sided|pack|partitioned|reduction"


def counts(functions):
    """MPI-5.0 counts its functions; whether the table has them all can't be seen from an installed library that is older."""
    carrying = [f for f in functions if re.fullmatch(CARRYING, f.group)]
    facts = {
        "functions": (len(functions), 664),
        "symbols that carry a buffer and a datatype": (len(carrying), 256),
        "procedures that carry a buffer and a datatype": (len({re.sub("_c$", "", f.name) for f in carrying}), 129),
        "large-count twins among them": (sum(1 for f in carrying if f.name.endswith("_c")), 127),
    }
    wrong = [f"{what}: {is_} instead of {should}" for what, (is_, should) in facts.items() if is_ != should]
    wrong += [f"{f.name} is accelerated without a buffer" for f in functions if f.handling == "accelerate" and f not in carrying]
    return wrong


def declared(directories):
    names = set()
    for directory in directories:
        for path in glob.glob(os.path.join(directory, "mpi*.h")):
            with open(path, encoding="utf-8", errors="replace") as header:
                text = re.sub(r"/\*.*?\*/", "", header.read(), flags=re.S)
            # A declaration starts a line with its return type; macros and casts do not.
            names |= set(re.findall(r"^[ \t]*(?:extern[ \t]+)?(?:int|double|MPI_\w+)[ \t]+(P?MPI_\w+)[ \t]*\(", text, flags=re.M))
    return names


def exported(library):
    lines = subprocess.run(["nm", "-D", "-P", "--defined-only", library], check=True, stdout=subprocess.PIPE, text=True).stdout
    names = {line.split()[0].split("@")[0] for line in lines.splitlines()}
    return {name for name in names if re.fullmatch(r"P?MPI_\w+", name)}


def covered(functions, names):
    known = set(generate.symbols(functions))
    wrong = []
    for name in sorted(names - known):
        plain = name.removeprefix("P")
        if plain not in REMOVED.split() and not re.fullmatch(CONVERSION, plain) and not re.fullmatch(NO_FUNCTION, name):
            wrong.append(f"neither in the table nor an exception: {name}")
    if len(names) < 500:
        wrong.append(f"only {len(names)} names were found: the check reads the wrong files")
    return wrong


def main(table, what, *rest):
    functions = generate.read_table(table)
    if what == "counts":
        wrong = counts(functions)
    else:
        names = declared(rest) if what == "header" else exported(rest[0])
        print(f"{len(names)} names")
        wrong = covered(functions, names)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
