#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates sources of the preload library from functions.tsv: entry stubs in assembly, slot names, version script.

  generate.py functions.tsv stubs x86_64|aarch64   entry stubs, their lazy thunks and the slots
  generate.py functions.tsv names                  the slot names, as an include file for slots.cpp
  generate.py functions.tsv exports                the linker's version script
  generate.py functions.tsv recorded HEADER        the recorded functions that HEADER, a preprocessed mpi.h, declares

A function has two slots: MPI_X at the index of its line, PMPI_X at that index plus the number of lines. No prototypes
are needed: a stub changes no argument register, so the same stub works for every ABI. Alternative considered: stubs
in C, which need one set of prototypes per ABI and cannot forward the variadic MPI_Pcontrol. The stub templates are in
stubs_<machine>.in.
"""
import os
import re
import sys

MACHINES = ("x86_64", "aarch64")
HANDLINGS = ("accelerate", "complete", "track", "gpu", "pass", "local")
# inspect.h, visibility.hpp, sanitizer.cpp
OWN_SYMBOLS = ("bestride_version", "bestride_slot_target", "__gmon_start__", "__asan_default_options")


# Kinds and arguments of the last column: RecordKind and ArgumentPositions in interpose/recording/recorded_call.hpp.
KINDS = ("call", "send", "receive", "sendrecv", "probe", "collective", "one_sided", "window_call", "window_collective", "file_call",
         "file_collective", "start_call", "start_send", "start_receive", "start_sendrecv", "start_collective", "start_file_call",
         "start_file_collective", "prepare_send", "prepare_receive", "prepare_collective", "activate", "activate_all", "wait", "wait_all",
         "wait_any", "wait_some", "test", "test_all", "test_any", "test_some", "poll", "free_request", "create", "duplicate", "create_some",
         "start_create", "free", "name", "create_inter", "create_window", "free_window", "open_file", "close_file", "begin_exposure", "begin_access",
         "end_access", "initialize", "initialize_session",
         "finalize", "abort")
ARGUMENTS = ("buffer", "count", "type", "peer", "tag", "peer2", "tag2", "root", "operation", "comm", "window", "file", "request", "number",
             "requests", "flag", "found", "indices", "made", "name", "group", "out_buffer", "out_counts", "out_type", "in_buffer", "in_counts",
             "in_type")


class Function:
    def __init__(self, name, group, carries, handling, record):
        self.name, self.group, self.carries, self.handling, self.record = name, group, carries, handling, record


def read_table(path):
    """The lines of functions.tsv. Raises ValueError with file and line if a line does not have the documented form."""
    functions = []
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            if line.startswith("#"):
                continue
            columns = line.rstrip("\n").split("\t")
            where = f"{path}:{number}"
            if len(columns) != 5 or not all(columns):
                raise ValueError(f"{where}: five columns separated by one tab are needed")
            name, group, carries, handling, record = columns
            if not name.startswith("MPI_") or not name.replace("_", "").isalnum():
                raise ValueError(f"{where}: {name} is not the name of an MPI function")
            if carries not in ("buffer", "-"):
                raise ValueError(f"{where}: {carries} is neither buffer nor -")
            if handling not in HANDLINGS:
                raise ValueError(f"{where}: {handling} is none of {', '.join(HANDLINGS)}")
            kind, *arguments = record.split(" ")
            if record != "-" and (kind not in KINDS or any(not re.fullmatch(f"({'|'.join(ARGUMENTS)})=[0-9]+", a) for a in arguments)):
                raise ValueError(f"{where}: {record} is neither - nor a kind and argument=position pairs")
            if functions and functions[-1].name >= name:
                raise ValueError(f"{where}: {name} is out of order or twice in the table")
            functions.append(Function(name, group, carries, handling, record))
    return functions


def symbols(functions):
    """All exported symbols, in the order of their slots."""
    return [f.name for f in functions] + ["P" + f.name for f in functions]


def stubs(functions, machine):
    with open(os.path.join(os.path.dirname(__file__), f"stubs_{machine}.in"), encoding="utf-8") as template:
        text = template.read()
    all_ = symbols(functions)
    text = text.replace("@ENTRIES@", "\n".join(f"entry {name}, {index}" for index, name in enumerate(all_)))
    text = text.replace("@THUNKS@", "\n".join(f"thunk {index}" for index in range(len(all_))))
    return text.replace("@SLOTS@", "\n".join(f"slot {index}" for index in range(len(all_))))


def names(functions):
    """The include file slot_names.inc. It has only PMPI_ names: the MPI_ name starts one character later."""
    out = ["// Generated by interpose/preload/generate.py from functions.tsv; not to be edited.",
           f"constexpr unsigned function_count = {len(functions)};",
           f"constexpr unsigned other_export_count = {len(OWN_SYMBOLS)};",
           "constexpr char name_text[] ="]
    offsets, at = [], 0
    for function in functions:
        out.append(f'    "P{function.name}\\0"')
        offsets.append(at)
        at += len(function.name) + 2
    if at > 65535:
        raise ValueError("the name table has outgrown its 16-bit offsets")
    out += ["    ;", "constexpr unsigned short name_offset[] = {"]
    out += ["    " + ", ".join(map(str, offsets[i:i + 16])) + "," for i in range(0, len(offsets), 16)]
    local = [int(function.handling == "local") for function in functions]
    out += ["};", "constexpr bool function_is_local[] = {"]
    out += ["    " + ", ".join(map(str, local[i:i + 32])) + "," for i in range(0, len(local), 32)]
    out += ["};"]
    return "\n".join(out) + "\n"


def exports(functions):
    out = ["/* Generated by interpose/preload/generate.py from functions.tsv; not to be edited. */", "{", "  global:"]
    out += [f"    {name};" for name in symbols(functions) + list(OWN_SYMBOLS)]
    out += ["  local: *;", "};"]
    return "\n".join(out) + "\n"


def recorded(functions, header):
    """BESTRIDE_RECORD(name, number, kind, positions): number is the line's in the table, from 0."""
    with open(header, encoding="utf-8", errors="replace") as file:
        declared = set(re.findall(r"\bP(MPI_\w+)\s*\(", file.read()))
    out = ["// Generated by interpose/preload/generate.py from functions.tsv; not to be edited."]
    for number, function in enumerate(functions):
        if function.record == "-" or function.name not in declared:
            continue
        kind, *arguments = function.record.split(" ")
        order = {argument.split("=")[0]: argument.split("=")[1] for argument in arguments}
        positions = ", ".join(f".{name} = {order[name]}" for name in ARGUMENTS if name in order)
        out.append(f"BESTRIDE_RECORD({function.name[4:]}, {number}, {kind}, ({{{positions}}}))")
    return "\n".join(out) + "\n"


def main(arguments):
    try:
        path, what, *rest = arguments
        functions = read_table(path)
        if what == "stubs" and rest and rest[0] in MACHINES:
            text = stubs(functions, rest[0])
        elif what == "names":
            text = names(functions)
        elif what == "exports":
            text = exports(functions)
        elif what == "recorded" and rest:
            text = recorded(functions, rest[0])
        else:
            raise ValueError(__doc__)
    except (ValueError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
