# SPDX-License-Identifier: Apache-2.0
"""Combines the C text of each rank, which fuzz_programs --emit writes, into one C program."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))


def source(prefix, ranks, threads, comment):
    text = "/* SPDX-License-Identifier: Apache-2.0\n" + "".join(f"   {line}\n" for line in comment.splitlines()) + "*/\n"
    text += "#define _GNU_SOURCE\n"
    for name in ("common.h", "helpers.h"):
        with open(os.path.join(HERE, name), encoding="utf-8") as file:
            text += "".join(line for line in file if not line.startswith(("#pragma once", "// SPDX")))
    bodies = []
    for rank in range(ranks):
        with open(f"{prefix}.{rank}", encoding="utf-8") as file:
            bodies.append(file.read())
    text += shorten("\n".join(bodies))
    text += "\nint main(int argc, char** argv) {\n"
    text += "  int provided = 0;\n  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);\n" if threads else "  MPI_Init(&argc, &argv);\n"
    text += "  MPI_Comm_rank(MPI_COMM_WORLD, &fuzz_rank);\n  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);\n"
    text += "  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);\n"
    text += "".join(f"  if (fuzz_rank == {rank}) rank{rank}();\n" for rank in range(ranks))
    text += "  MPI_Barrier(MPI_COMM_WORLD);\n  MPI_Finalize();\n"
    text += '  printf("rank %d: %s\\n", fuzz_rank, fuzz_wrong ? "WRONG" : "ok");\n  return fuzz_wrong != 0;\n}\n'
    return text


def shorten(text):
    """Removes the comments of empty steps."""
    lines, result = text.splitlines(), []
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if re.match(r"\s*/\* step", line) and (re.match(r"\s*/\* step", following) or following == "}"):
            continue
        result.append(line)
    return "\n".join(result)
