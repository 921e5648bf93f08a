#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the generator: the stubs of every architecture assemble (if there is an assembler for it) and define the functions of the
table; an invalid table is rejected with the line number."""
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


def check_refusals(folder):
    bad = {
        "MPI_Send\tp2p\tbuffer\tpass\n": "five columns",
        "MPI_Send\tp2p\tbuffer\thasten\t-\n": "none of",
        "MPI_Send\tp2p\tyes\tpass\t-\n": "neither",
        "Send\tp2p\tbuffer\tpass\t-\n": "not the name",
        "MPI_Send\tp2p\tbuffer\tpass\t-\nMPI_Send\tp2p\tbuffer\tpass\t-\n": "twice",
        "MPI_Send\tp2p\tbuffer\tpass\thurl comm=5\n": "neither - nor a kind",
        "MPI_Send\tp2p\tbuffer\tpass\tsend comm=last\n": "neither - nor a kind",
    }
    wrong = []
    for number, (lines, complaint) in enumerate(bad.items()):
        path = os.path.join(folder, f"bad{number}.tsv")
        with open(path, "w", encoding="utf-8") as file:
            file.write(lines)
        ran = subprocess.run([sys.executable, "-B", os.path.join(SURFACE, "generate.py"), path, "names"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        if ran.returncode == 0 or complaint not in ran.stderr or ran.stdout:
            wrong.append(f"a table with {lines!r} was not refused as {complaint!r}: {ran.stderr}")
    return wrong


def main():
    with tempfile.TemporaryDirectory() as folder:
        wrong = check_refusals(folder)
        for machine in generate.MACHINES:
            wrong += check_machine(machine, folder)
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
