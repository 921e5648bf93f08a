#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the generator: the stubs of every architecture assemble (if there is an assembler for it) and define the functions of the
table; an invalid table is rejected with the line number, and so is a function without an entry; a backend gets the functions and
names that the table gives its ABI."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SURFACE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "interpose", "preload")
sys.path.insert(0, SURFACE)
import generate

TABLE = os.path.join(SURFACE, "functions.tsv")


def assembler(machine, source, output):
    """A command that assembles `source`, or None."""
    if shutil.which("llvm-mc"):
        return ["llvm-mc", f"--triple={machine}-linux-gnu", "-filetype=obj", source, "-o", output]
    if shutil.which("clang"):
        return ["clang", f"--target={machine}-linux-gnu", "-c", source, "-o", output]
    for tool in (f"{machine}-linux-gnu-as", "as" if os.uname().machine == machine else ""):
        if tool and shutil.which(tool):
            return [tool, source, "-o", output]
    return None


def check_object(path, wanted):
    text = subprocess.run(["readelf", "-s", "-W", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    defined = {m[1]: int(m[0], 0) for m in re.findall(r"^ *\d+: [0-9a-f]+ +(\w+) FUNC +GLOBAL DEFAULT +\d+ (\w+)$", text, re.M)}
    slots = re.search(r" (\w+) \w+ +GLOBAL HIDDEN +\d+ bestride_slots$", text, re.M)
    wrong = [f"{path}: does not define the function {name}" for name in wanted if name not in defined]
    wrong += [f"{path}: {name} has {size} bytes, more than one jump" for name, size in defined.items() if size > 20]
    if not slots or int(slots[1], 0) != 8 * len(wanted):
        wrong.append(f"{path}: the number of slots is not the number of symbols")
    return wrong


def check_machine(machine, folder):
    functions = generate.read_table(TABLE)
    wanted = generate.symbols(functions)
    text = generate.stubs(functions, machine)
    wrong = [f"{machine}: no entry for {name}" for i, name in enumerate(wanted) if f"\nentry {name}, {i}\n" not in text]
    source, output = os.path.join(folder, machine + ".s"), os.path.join(folder, machine + ".o")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    command = assembler(machine, source, output)
    if not command:
        print(f"{machine}: no assembler; only the text was checked")
        return wrong
    ran = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if ran.returncode:
        return wrong + [f"{machine}: {ran.stderr[:2000]}"]
    print(f"{machine}: assembled by {command[0]}")
    return wrong + check_object(output, wanted)


# The columns of MPI_Send, by name, in the order of the table.
SEND = dict(zip(generate.ORDER, "MPI_Send p2p-blocking accelerate MPI_ both MPI_ - always yes".split() + ["send peer=3"]))


def line(**changes):
    return "\t".join({**SEND, **changes}.values()) + "\n"


def run_generator(lines, folder, *arguments):
    path = os.path.join(folder, "table.tsv")
    with open(path, "w", encoding="utf-8") as file:
        file.write(lines)
    return subprocess.run([sys.executable, "-B", os.path.join(SURFACE, "generate.py"), path, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)


def refused(lines, complaint, folder, *arguments):
    """What is wrong if the generator does not print one line with the place and the complaint."""
    ran = run_generator(lines, folder, *arguments)
    one_line = ran.stderr.count("\n") == 1 and re.match(r"\S+table\.tsv:\d+: ", ran.stderr)
    return [] if ran.returncode and complaint in ran.stderr and one_line and not ran.stdout else [
        f"a table with {lines!r} was not refused as {complaint!r}: {ran.stderr}"]


def check_refusals(folder):
    bad = {
        "MPI_Send\tp2p-blocking\taccelerate\tboth\n": "10 columns",
        line(group="p2p-blokking"): "write one of abi, ",
        line(handling="hasten"): "write one of accelerate",
        line(mpich="PMPI_"): "write one of both",
        line(mpich="-"): "write both or MPI_",
        line(handling="forward"): "write - or another handling",
        line(handling="forward", mpich="-", openmpi="-", mpi_abi="-", required="required"): "the handling use",
        line(handling="use", mpich="-", openmpi="-", mpi_abi="-", hook="unless_intercepted"): "write always or never",
        line(hook="never"): "write always for its hook",
        line(record="-"): "write - for waits",
        line(record="test request=0"): "write - for waits",
        line(name="Send"): "not the name",
        line() + line(): "twice",
        line() + line(name="MPI_Send_c", hook="unless_intercepted"): "write the same for both",
        line(record="hurl comm=5"): "write - or a kind",
        line(record="send comm=last"): "write - or a kind",
    }
    wrong = []
    for lines, complaint in bad.items():
        wrong += refused(lines, complaint, folder, "names")
    return wrong


def check_backend(folder):
    """Of three functions, the header declares the first two."""
    header = os.path.join(folder, "mpi.h")
    with open(header, "w", encoding="utf-8") as file:
        file.write("int PMPI_Put(int); int PMPI_Send(int);\n")
    lines = line(name="MPI_Put", handling="refuse") + line() + line(name="MPI_Ssend")
    wrong = []
    for abi, by_pmpi in (("mpich", ""), ("openmpi", "__VA_ARGS__"), ("mpi_abi", "")):
        both = "true" if by_pmpi else "false"
        made = run_generator(lines, folder, "backend", abi, header).stdout.splitlines()
        for wanted in (f"BESTRIDE_FROM_START(Send, false, true, {both})", f"BESTRIDE_REFUSE(Put, false, true, {both})", "BESTRIDE_ABSENT(Ssend)",
                       "#define BESTRIDE_DECLARES_Send", "#define BESTRIDE_BY_MPI_NAME_Send(...) __VA_ARGS__",
                       f"#define BESTRIDE_BY_PMPI_NAME_Send(...) {by_pmpi}".rstrip(), "#define BESTRIDE_BY_MPI_NAME_Ssend(...)"):
            if wanted not in made:
                wrong.append(f"{abi}: no line {wanted}")
        if "#define BESTRIDE_DECLARES_Ssend" in made:
            wrong.append(f"{abi}: MPI_Ssend is not declared")
    with open(header, "w", encoding="utf-8") as file:
        file.write("int PMPI_Send(const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) __attribute__((x(1,2)));\n")
    for record, complaint in (("send peer=3 comm=5", ""), ("send peer=3 comm=2", "is 'MPI_Datatype type'"), ("send peer=5 comm=5", "is 'MPI_Comm comm'"),
                              ("send peer=6 comm=5", "is 'nothing'")):
        if complaint:
            wrong += refused(line(record=record), complaint, folder, "recorded", header)
        elif run_generator(line(record=record), folder, "recorded", header).returncode:
            wrong.append("right positions were refused")
    with open(header, "w", encoding="utf-8") as file:
        file.write("int PMPI_Put(int); int PMPI_Send(int);\n")
    machine = os.uname().machine
    for symbols, complaint in (("bestride_entries_Put bestride_entry_Send", ""), ("bestride_entries_Put", "MPI_Send has the handling accelerate"),
                               ("bestride_entry_Put bestride_entry_Send", "MPI_Put has the handling refuse")):
        source, output = os.path.join(folder, "entries.s"), os.path.join(folder, "entries.o")
        with open(source, "w", encoding="utf-8") as file:
            file.write("".join(f"  .globl {symbol}\n{symbol}:\n" for symbol in symbols.split()))
        subprocess.run(assembler(machine, source, output), check=True)
        if complaint:
            wrong += refused(lines, complaint, folder, "check", "mpich", header, output)
        elif run_generator(lines, folder, "check", "mpich", header, output).returncode:
            wrong.append("complete entries were refused")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_refusals(folder) + check_backend(folder)
        for machine in generate.MACHINES:
            wrong += check_machine(machine, folder)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
