#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the targets of the slots in a running program (slots_report) with the table.

  check_slots.py disabled FUNCTIONS_TSV -- command...    BESTRIDE_DISABLE is set: all slots lead to the MPI library
  check_slots.py intercepted FUNCTIONS_TSV -- command... all functions that the library has lead to the backend, except `pass` and `local`
                                                         ones, which must not; `gpu` ones may
  check_slots.py gpu FUNCTIONS_TSV -- command...         a GPU may be used: the same, and `gpu` functions lead to the backend, too
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "interpose", "preload"))
import generate

CALLED = {"MPI_Init_thread", "MPI_Type_vector", "MPI_Type_commit", "MPI_Pack", "MPI_Irecv", "MPI_Isend", "MPI_Waitall",
          "MPI_Sendrecv", "MPI_Type_free", "MPI_Pcontrol", "MPI_Wtime", "MPI_Wtick", "MPI_Finalize"}
# Functions that complete a request or free a handle must be intercepted under both names, because MPICH's mpi_f08 layer calls PMPI_X for them.
# Calls that move data or create communicators may be missed, which is only slower.
MAY_BE_MISSED = {"MPI_Cart_create", "MPI_Cart_sub", "MPI_Comm_dup", "MPI_Comm_split", "MPI_Dist_graph_create",
                 "MPI_Dist_graph_create_adjacent", "MPI_Graph_create"}


def main(kind, table, dashes, *command):
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    leads = dict(re.findall(r"^slot (\S+) (\S+)$", text, re.M))
    functions = generate.read_table(table)
    wrong = []
    if set(leads) != set(generate.symbols(functions)):
        wrong.append(f"{len(leads)} slots were reported")
    for name, object_ in leads.items():
        if kind == "disabled" and object_ not in ("same", "-", "lacks"):
            wrong.append(f"{name} leads into {object_}")
    if kind == "disabled":
        wrong += [f"{name} was called and does not lead to the MPI library" for name in sorted(CALLED) if leads.get(name) != "same"]
    else:
        for f in functions:
            if leads.get(f.name, "").startswith("libbestride-") and f.handling in ("pass", "local"):
                wrong.append(f"{f.name} is intercepted, but its handling in the table is {f.handling}")
            names = [f.name] if f.handling in ("accelerate", "gpu") or f.name in MAY_BE_MISSED else [f.name, "P" + f.name]
            for name in names if f.handling not in ("pass", "local") + (("gpu",) if kind == "intercepted" else ()) else []:
                if not leads.get(name, "").startswith("libbestride-") and leads.get(name) != "lacks":
                    wrong.append(f"{name} is not intercepted ({leads.get(name)}), but its handling in the table is {f.handling}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
