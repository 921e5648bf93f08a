#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the targets of the slots in a running program (slots_report) with the table.

  check_slots.py disabled FUNCTIONS_TSV -- command...        BESTRIDE_DISABLE is set: all slots lead to the MPI library
  check_slots.py intercepted FUNCTIONS_TSV ABI -- command... slots lead to the backend for ABI exactly if the table says so; those of
                                                             functions that are intercepted on demand may or may not
  check_slots.py gpu FUNCTIONS_TSV ABI -- command...         a GPU may be used: they must, too
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "interpose", "preload"))
import generate

CALLED = {"MPI_Init_thread", "MPI_Type_vector", "MPI_Type_commit", "MPI_Pack", "MPI_Irecv", "MPI_Isend", "MPI_Waitall",
          "MPI_Sendrecv", "MPI_Type_free", "MPI_Pcontrol", "MPI_Wtime", "MPI_Wtick", "MPI_Finalize"}


def main(kind, table, *rest):
    at = rest.index("--")
    text = subprocess.run(rest[at + 1:], check=True, stdout=subprocess.PIPE, text=True).stdout
    leads = dict(re.findall(r"^slot (\S+) (\S+)$", text, re.M))
    functions = generate.read_table(table)
    wrong = []
    if set(leads) != set(generate.symbols(functions)):
        wrong.append(f"{len(leads)} slots were reported")
    if kind == "disabled":
        wrong += [f"{name} leads into {object_}" for name, object_ in leads.items() if object_ not in ("same", "-", "lacks")]
        wrong += [f"{name} was called and does not lead to the MPI library" for name in sorted(CALLED) if leads.get(name) != "same"]
    else:
        abi = rest[0]
        for f in functions:
            for name in (f.name, "P" + f.name):
                target = leads.get(name, "")
                intercepted, wanted = target.startswith("libbestride-"), name in f.names(abi)
                if intercepted and not wanted:
                    wrong.append(f"{name} is intercepted, but the table says '{getattr(f, abi)}' for {abi}: correct {f.where}")
                if wanted and not intercepted and target != "lacks" and (kind == "gpu" or f.handling in generate.FROM_START):
                    wrong.append(f"{name} is not intercepted ({target}), but the table says '{getattr(f, abi)}' for {abi}: correct {f.where}")
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
