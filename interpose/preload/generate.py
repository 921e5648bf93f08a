#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates from functions.tsv all sources that depend on which MPI functions there are and what is done with them.

  generate.py functions.tsv stubs x86_64|aarch64   entry stubs, their lazy thunks and the slots
  generate.py functions.tsv slots                  the names of the slots, as an include file for slots.cpp
  generate.py functions.tsv exports                the linker's version script
  generate.py functions.tsv names                  name and group of each function, for telemetry/record/functions.cpp
  generate.py functions.tsv doctor                 the functions that may be accelerated, for cli/common/intercepted.cpp
  generate.py functions.tsv backend ABI HEADER...  the functions that the backend for ABI intercepts and uses, among
                                                   those that the headers declare: mpi.h, preprocessed, and
                                                   interpose/mpi/newer_functions.hpp
  generate.py functions.tsv recorded HEADER        the recorded functions that HEADER, a preprocessed mpi.h, declares
  generate.py functions.tsv check ABI FILE...      fails if a function that the backend for ABI intercepts has no entry;
                                                   FILE: the headers as above, then the backend's object files (*.o)

A function has two slots: MPI_X at the index of its line, PMPI_X at that index plus the number of lines. No prototypes
are needed: a stub changes no argument register, so the same stub works for every ABI. Alternative considered: stubs
in C, which need one set of prototypes per ABI and cannot forward the variadic MPI_Pcontrol. The stub templates are in
stubs_<machine>.in.
"""
import os
import re
import subprocess
import sys

MACHINES = ("x86_64", "aarch64")
ABIS = ("mpich", "openmpi", "mpi_abi")
# The words of each column. Doctor counts a group that begins with collective- as one that can be accelerated.
COLUMNS = {
    "group": ("abi", "address", "attribute-deprecated", "bsend-buffer", "collective-blocking", "collective-nonblocking", "collective-persistent",
              "communicator", "completion", "datatype", "environment", "error", "file", "generalised-request", "group", "handle-conversion", "info",
              "init", "io", "memory", "neighborhood-blocking", "neighborhood-nonblocking", "neighborhood-persistent", "one-sided", "operation",
              "p2p-blocking", "p2p-nonblocking", "p2p-persistent", "pack", "pack-size", "partitioned", "partitioned-control", "persistent-control",
              "probe", "process", "reduction", "session", "status", "synchronisation", "time", "tool-information", "topology", "window"),
    "handling": ("accelerate", "complete", "track", "on_demand", "refuse", "use", "forward"),
    **{abi: ("both", "MPI_", "-") for abi in ABIS},
    "required": ("required", "-"),
    "hook": ("always", "unless_intercepted", "never"),
    "waits": ("yes", "-"),
}
ORDER = ("name", *COLUMNS, "record")
FROM_START = ("accelerate", "complete", "track")
ON_DEMAND = ("on_demand", "refuse")
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
POLLS = ("test", "test_all", "test_any", "test_some", "poll")
ARGUMENTS = ("buffer", "count", "type", "peer", "tag", "peer2", "tag2", "root", "operation", "comm", "window", "file", "request", "number",
             "requests", "flag", "found", "indices", "made", "name", "group", "out_buffer", "out_counts", "out_type", "in_buffer", "in_counts",
             "in_type")
# What the declaration of an argument with this name contains, at least.
TYPES = {"buffer": "void", "type": "MPI_Datatype", "operation": "MPI_Op", "comm": "MPI_Comm", "window": "MPI_Win", "file": "MPI_File",
         "request": "MPI_Request", "requests": "MPI_Request", "group": "MPI_Group", "out_buffer": "void", "in_buffer": "void",
         "out_type": "MPI_Datatype", "in_type": "MPI_Datatype", "count": r"\b(int|MPI_Count)\b", "peer": r"\bint\b", "tag": r"\bint\b",
         "peer2": r"\bint\b", "tag2": r"\bint\b", "root": r"\bint\b", "number": r"\bint\b", "flag": r"\bint\b", "found": r"\bint\b",
         "name": r"\bchar\b"}
GENERATED = "Generated by interpose/preload/generate.py from functions.tsv; not to be edited."


class Function:
    """One line of the table: an attribute per column. `where`: file and line."""
    def __init__(self, where, columns):
        self.where = where
        for column, word in zip(ORDER, columns):
            setattr(self, column, word)

    def intercepted(self):
        return self.handling in FROM_START + ON_DEMAND

    def names(self, abi):
        """The names by which calls are intercepted under `abi`."""
        return {"both": [self.name, "P" + self.name], "MPI_": [self.name], "-": []}[getattr(self, abi)]


def check_line(function):
    """What is wrong with the line; None if nothing is."""
    if not function.name.startswith("MPI_") or not function.name.replace("_", "").isalnum():
        return f"{function.name} is not the name of an MPI function"
    for column, words in COLUMNS.items():
        if getattr(function, column) not in words:
            return f"{column} of {function.name} is '{getattr(function, column)}': write one of {', '.join(words)}"
    kind, *arguments = function.record.split(" ")
    if function.record != "-" and (kind not in KINDS or any(not re.fullmatch(f"({'|'.join(ARGUMENTS)})=[0-9]+", a) for a in arguments)):
        return f"record of {function.name} is '{function.record}': write - or a kind and argument=position pairs (interpose/recording/recorded_call.hpp)"
    for abi in ABIS:
        if function.intercepted() != bool(function.names(abi)):
            return (f"{function.name} has the handling {function.handling} and '{getattr(function, abi)}' for {abi}: "
                    + ("write both or MPI_" if function.intercepted() else "write - or another handling"))
    if function.handling == "forward" and function.required != "-":
        return f"{function.name} is required, but the backend neither intercepts nor uses it: write - or the handling use"
    if function.handling != "forward" and not function.intercepted() and function.hook == "unless_intercepted":
        return f"{function.name} is never intercepted: write always or never for its hook"
    if function.waits == "yes" and (function.record == "-" or kind in POLLS):
        return f"{function.name} waits, but is {'a polling call' if kind in POLLS else 'not recorded'}: write - for waits or another record"
    if function.waits == "yes" and function.hook == "never":
        return f"{function.name} waits: write always for its hook, or other ranks may wait for what is pending"
    return None


def read_table(path):
    """The lines of functions.tsv. Raises ValueError with file and line if a line does not have the documented form."""
    functions = []
    with open(path, encoding="utf-8") as table:
        for number, line in enumerate(table, 1):
            if line.startswith("#"):
                continue
            columns = line.rstrip("\n").split("\t")
            where = f"{path}:{number}"
            if len(columns) != len(ORDER) or not all(columns):
                raise ValueError(f"{where}: {len(ORDER)} columns separated by one tab are needed: {' '.join(ORDER)}")
            function = Function(where, columns)
            if wrong := check_line(function):
                raise ValueError(f"{where}: {wrong}")
            if functions and functions[-1].name >= function.name:
                raise ValueError(f"{where}: {function.name} is out of order or twice in the table")
            functions.append(function)
    twins = {f.name: f for f in functions}
    for function in functions:
        twin = twins.get(function.name + "_c")
        for column in ORDER[1:] if twin else ():
            if column in ("handling", "required") and {function.handling, twin.handling} == {"use", "forward"}:
                continue
            if getattr(twin, column) != getattr(function, column):
                raise ValueError(f"{twin.where}: {column} of {twin.name} is '{getattr(twin, column)}', but '{getattr(function, column)}' "
                                 f"of {function.name}: write the same for both")
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


def slots(functions):
    """The include file slot_names.inc. It has only PMPI_ names: the MPI_ name starts one character later."""
    out = [f"// {GENERATED}",
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
    unhooked = [int(function.hook == "never") for function in functions]
    out += ["};", "constexpr bool function_needs_no_hook[] = {"]
    out += ["    " + ", ".join(map(str, unhooked[i:i + 32])) + "," for i in range(0, len(unhooked), 32)]
    out += ["};"]
    return "\n".join(out) + "\n"


def exports(functions):
    out = [f"/* {GENERATED} */", "{", "  global:"]
    out += [f"    {name};" for name in symbols(functions) + list(OWN_SYMBOLS)]
    out += ["  local: *;", "};"]
    return "\n".join(out) + "\n"


def names(functions):
    return "\n".join([f"// {GENERATED}"] + [f'{{"{f.name}", "{f.group}"}},' for f in functions]) + "\n"


def doctor(functions):
    """Scans are carried out by the MPI library alone (docs/collectives.md)."""
    out = [f"// {GENERATED}"]
    out += [f'{{"{f.name}", "{f.handling}"}},' for f in functions if f.handling in FROM_START]
    out += [f'{{"{f.name}", "collective"}},' for f in functions
            if f.handling == "on_demand" and f.group.startswith("collective-") and not re.fullmatch(r"MPI_[A-Za-z]*scan(_init)?(_c)?", f.name)]
    return "\n".join(out) + "\n"


def declared(headers):
    """{function: the declarations of its parameters} of the functions whose PMPI_ twins the headers declare."""
    found = {}
    for header in headers:
        with open(header, encoding="utf-8", errors="replace") as file:
            found |= {name: parameters.split(",") for name, parameters in re.findall(r"\bP(MPI_\w+)\s*\(([^)]*)", file.read())}
    return found


def backend(functions, abi, headers):
    """The include file mpi_functions.inc; see interpose/mpi/functions.hpp."""
    known = declared(headers)
    lists = {"BESTRIDE_FROM_START": FROM_START, "BESTRIDE_ON_DEMAND": ("on_demand",), "BESTRIDE_REFUSE": ("refuse",), "BESTRIDE_USE": ("use",)}
    out = [f"// {GENERATED}", "#ifndef BESTRIDE_FUNCTION", "#define BESTRIDE_FUNCTION(...)", "#endif"]
    for macro in lists:
        out += [f"#ifndef {macro}", f"#define {macro}(...) BESTRIDE_FUNCTION(__VA_ARGS__)", "#endif"]
    for macro, handlings in lists.items():
        for f in functions:
            if f.handling in handlings and f.name in known:
                facts = (f.required == "required", f.hook == "always", getattr(f, abi) == "both")
                out.append(f"{macro}({f.name[4:]}, {', '.join(str(fact).lower() for fact in facts)})")
    out += ["#ifdef BESTRIDE_ABSENT", *(f"BESTRIDE_ABSENT({f.name[4:]})" for f in functions if f.intercepted() and f.name not in known)]
    out += ["#undef BESTRIDE_ABSENT", "#endif"]
    out += [f"#undef {macro}" for macro in ["BESTRIDE_FUNCTION", *lists]]
    # The macros of each function, once.
    out += ["#ifndef BESTRIDE_FUNCTION_MACROS", "#define BESTRIDE_FUNCTION_MACROS"]
    for f in functions:
        if not f.intercepted():
            continue
        if f.name in known:
            out.append(f"#define BESTRIDE_DECLARES_{f.name[4:]}")
        for macro, name in (("BESTRIDE_BY_MPI_NAME", f.name), ("BESTRIDE_BY_PMPI_NAME", "P" + f.name)):
            out.append(f"#define {macro}_{f.name[4:]}(...) {'__VA_ARGS__' if f.name in known and name in f.names(abi) else ''}".rstrip())
    out += ["#endif"]
    return "\n".join(out) + "\n"


def recorded(functions, header):
    """BESTRIDE_RECORD(name, number, kind, waits, positions): number is the line's in the table, from 0."""
    known = declared([header])
    out = [f"// {GENERATED}"]
    for number, function in enumerate(functions):
        if function.record == "-" or function.name not in known:
            continue
        kind, *arguments = function.record.split(" ")
        order = {argument.split("=")[0]: argument.split("=")[1] for argument in arguments}
        for argument, position in order.items():
            parameters = known[function.name]
            there = " ".join(parameters[int(position)].split()) if int(position) < len(parameters) else "nothing"
            if not re.search(TYPES.get(argument, ""), there):
                raise ValueError(f"{function.where}: record of {function.name} has {argument}={position}, but the argument at this position, from 0, "
                                 f"is '{there}': write the position of the {argument}")
        positions = ", ".join(f".{name} = {order[name]}" for name in ARGUMENTS if name in order)
        waits = "true" if function.waits == "yes" else "false"
        out.append(f"BESTRIDE_RECORD({function.name[4:]}, {number}, {kind}, {waits}, ({{{positions}}}))")
    return "\n".join(out) + "\n"


def check_entries(functions, abi, files):
    """Raises ValueError that names the first function without an entry. The linker would only say which symbol is undefined."""
    objects = [file for file in files if file.endswith(".o")]
    known = declared([file for file in files if not file.endswith(".o")])
    text = subprocess.run(["nm", "-P", "--defined-only", *objects], check=True, stdout=subprocess.PIPE, text=True).stdout
    defined = set(re.findall(r"^bestride_(entry|entries)_(\w+) ", text, re.M))
    for f in functions:
        wanted = "entry" if f.handling in FROM_START else "entries"
        if f.intercepted() and f.name in known and (wanted, f.name[4:]) not in defined:
            raise ValueError(f"{f.where}: {f.name} has the handling {f.handling}, but no file of interpose/calls/ defines its entry: "
                             f"add one ({'entry.hpp' if wanted == 'entry' else 'on_demand_entry.hpp'}), or write the handling forward")
    return ""


def main(arguments):
    try:
        path, what, *rest = arguments
        functions = read_table(path)
        if what == "stubs" and rest and rest[0] in MACHINES:
            text = stubs(functions, rest[0])
        elif what in ("slots", "exports", "names", "doctor"):
            text = globals()[what](functions)
        elif what == "backend" and len(rest) > 1 and rest[0] in ABIS:
            text = backend(functions, rest[0], rest[1:])
        elif what == "recorded" and rest:
            text = recorded(functions, rest[0])
        elif what == "check" and len(rest) > 1 and rest[0] in ABIS:
            text = check_entries(functions, rest[0], rest[1:])
        else:
            raise ValueError(__doc__)
    except (ValueError, OSError) as problem:
        print(problem, file=sys.stderr)
        return 1
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
