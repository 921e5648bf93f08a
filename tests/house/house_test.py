#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""house_test.py ROOT: prints violations of the house rules, one line each as file:line: rule; exit code 1 if there are any.

The rooms, their sub-rooms and the allowed includes are read from the tables in docs/architecture.md, so the page and the check
agree. All rules are fatal; none can be disabled for a line.
"""
import os
import re
import sys

MOST_LINES = 600
MOST_SOURCE_LINES = 92840  # of all source without tests and benchmarks; CONTRIBUTING.md has the goal
MOST_VARIABLES = 29        # in docs/variables.md
CODE = (".cpp", ".hpp", ".h", ".c", ".cu", ".inc", ".py", ".sh", ".F90", ".f90", ".tsv")
TEXT = CODE + (".md", ".txt", ".cmake", ".json", ".yml", ".yaml")
TABLES = (".tsv", ".json")  # their length depends on their entries
TEST = re.compile(r"(tests|bench)/|.*/testing/|.*(_test|_main)\.\w+$|.*/(test_|cached_job|detection_fixture|modeled_job|"
                  r"sample_(job|window|record)\.)")  # files that are no part of the product
MARKER = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
# American spelling, as in MPI's names; a word alone in quotes or an option may be older than this rule.
BRITISH = re.compile(r"neighbour|behaviour|colour|favour|modelled|licence|analyse[ds]?\b|(quant|synchron|initial|serial|optim|normal|special|recogn)"
                     r"is(e|ing|ation)", re.I)
SPELLED_BEFORE = ("interpose/preload/functions.tsv", "tests/watch/strangers/", "tests/watch/awkward/", "tests/house/")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"')
NAMESPACE = re.compile(r"^namespace bestride(?:::inline (\w+))? \{")
ROW = re.compile(r"^\|\s*`(\w+)/`\s*\|[^|]*\|\s*([^|]*?)\s*\|")
SUB_ROW = re.compile(r"^\|\s*`((?:\w+/)+)(\w+)/`\s*\|[^|]*\|\s*([^|]*?)\s*\|")


def rooms_of(page):
    """{room: the rooms it may include} from the table of docs/architecture.md, top row first."""
    rows = [match.groups() for match in map(ROW.match, page.splitlines()) if match]
    names = [name for name, _ in rows]
    allowed = {}
    for position, (name, words) in enumerate(rows):
        if words.startswith("all but "):
            allowed[name] = set(names) - set(re.split(r"[,\s]+", words[len("all but "):]))
        elif words == "all below":
            allowed[name] = set(names[position + 1:]) - {"cli"}  # the command is not a part of the library
        else:
            allowed[name] = {word for word in re.split(r"[,\s]+", words) if word in names}
    return allowed


def sub_rooms_of(page):
    """{folder: {sub-room: the sub-rooms of this folder that it may include}} from the tables of sub-rooms, top row first."""
    rows = {}
    for parent, name, words in (match.groups() for match in map(SUB_ROW.match, page.splitlines()) if match):
        rows.setdefault(parent.rstrip("/"), []).append((name, words))
    allowed = {}
    for parent, listed in rows.items():
        names = [name for name, _ in listed]
        allowed[parent] = {
            name: set(names[position + 1:]) if words == "all below" else {word for word in re.split(r"[,\s]+", words) if word in names}
            for position, (name, words) in enumerate(listed)}
    return allowed


def sub_room_violation(path, target, sub_rooms):
    """The reason why the file at `path` may not include `target`, or None. The files directly in a folder are above its sub-rooms."""
    for parent, rooms in sub_rooms.items():
        if not (path.startswith(parent + "/") and target.startswith(parent + "/")):
            continue
        source = path[len(parent) + 1:].split("/")
        included = target[len(parent) + 1:].split("/")
        if len(source) == 1:
            continue
        if source[0] not in rooms:
            return f"{parent}/{source[0]}/ is not in the tables of docs/architecture.md"
        if len(included) == 1:
            return f"a sub-room may not include {target}, which is above it"
        if included[0] != source[0] and included[0] not in rooms[source[0]] and not TEST.match(path):
            return f"{parent}/{source[0]}/ may not include {parent}/{included[0]}/ (docs/architecture.md)"
    return None


def files_of(root):
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if not s.startswith(".") and not (folder == root and re.match(r"build($|-)", s))
                         and s != "__pycache__"]
        for name in sorted(names):
            if name.endswith(TEXT):
                yield os.path.relpath(os.path.join(folder, name), root)


def check_file(path, lines, rooms, sub_rooms, root):
    """Yields (line number, rule) for one file."""
    if len(lines) > MOST_LINES and not path.endswith(TABLES):
        yield len(lines), f"more than {MOST_LINES} lines: a file is about one thing, split it"
    if path.endswith(CODE) and not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:3]):
        yield 1, "no 'SPDX-License-Identifier: Apache-2.0' in the first three lines"
    if path.endswith((".hpp", ".h")) and "#pragma once" not in (line.strip() for line in lines):
        yield 1, "a header without #pragma once"
    text = "\n".join(lines)
    for british in BRITISH.finditer(text) if not path.startswith(SPELLED_BEFORE) else ():
        if not re.search(r"[\"'`-]\w*$", text[max(0, british.start() - 40):british.start()]):
            yield text.count("\n", 0, british.start()) + 1, f"'{british.group()}': American spelling, as in MPI's names"
    room = path.split(os.sep)[0]
    for number, line in enumerate(lines, 1):
        if MARKER.search(line):
            yield number, "a marker of unfinished work: finish it, or write what is left into the docs"
        if root in line:
            yield number, "names the folder it was developed in"
        namespace = NAMESPACE.match(line)
        if namespace and room in rooms and (namespace.group(1) or "base") != room:
            yield number, f"the namespace of {room}/ is " + ("bestride" if room == "base" else f"bestride::inline {room}")
        include = INCLUDE.match(line)
        if include and room in rooms:
            target = include.group(1).split("/")[0]
            if include.group(1).startswith("."):
                yield number, "an include relative to the file: write it from the repository root"
            elif target in rooms and target != room and target not in rooms[room]:
                yield number, f"{room}/ may not include {target}/ (docs/architecture.md)"
            elif why := sub_room_violation(path, include.group(1), sub_rooms):
                yield number, why


QUIRKS = "interpose/mpi/quirks.hpp"


def quirk_violations(sources):
    """Work-arounds for a version of MPICH that interpose/mpi/quirks.hpp does not have, and entries there that nothing uses, as 'file:line: rule'.

    `sources`: lines by path.
    """
    used = set()
    for path, lines in sources.items():
        if path.startswith("interpose/") and path != QUIRKS:
            used.update(name for line in lines for name in re.findall(r"quirks::(\w+)", line))
            for number, line in enumerate(lines, 1):
                if re.search(r"//.*\bMPICH \d", line):
                    yield f"{path}:{number}: a version of MPICH in a comment: {QUIRKS} says what a version does, and is named here"
    known = {}
    for number, line in enumerate(sources.get(QUIRKS, []), 1):
        if match := re.match(r"inline constexpr bool (\w+)", line):
            known[match.group(1)] = number
    for name, number in known.items():
        if name not in used:
            yield f"{QUIRKS}:{number}: nothing works around {name}"
    for name in sorted(used - set(known)):
        yield f"{QUIRKS}:1: there is no {name}"


def budget_violations(source_lines, variables):
    """What exceeds the limits of CONTRIBUTING.md, as 'file:line: rule'."""
    if source_lines > MOST_SOURCE_LINES:
        yield f"CONTRIBUTING.md:1: {source_lines} lines of source, more than {MOST_SOURCE_LINES}: remove something"
    if variables > MOST_VARIABLES:
        yield f"docs/variables.md:1: {variables} variables, more than {MOST_VARIABLES}: remove one, or do without the new one"


def check(root):
    """All violations as 'file:line: rule'."""
    root = os.path.abspath(root)
    with open(os.path.join(root, "docs/architecture.md"), encoding="utf-8") as page:
        text = page.read()
    rooms, sub_rooms = rooms_of(text), sub_rooms_of(text)
    found = []
    if not rooms:
        found.append("docs/architecture.md:1: the table of rooms can't be read")
    source_lines = variables = 0
    sources = {}
    for path in files_of(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        if path.endswith(CODE) and not TEST.match(path):
            source_lines += len(lines)
            sources[path] = lines
        if path == "docs/variables.md":
            variables = sum(line.startswith("| `BESTRIDE_") and "BESTRIDE_FORCE=" not in line for line in lines)
        found += [f"{path}:{number}: {rule}" for number, rule in check_file(path, lines, rooms, sub_rooms, root)]
    found += budget_violations(source_lines, variables)
    found += quirk_violations(sources)
    for parent, names in sub_rooms.items():
        for name in names:
            if not os.path.isdir(os.path.join(root, parent, name)):
                found.append(f"docs/architecture.md:1: there is no {parent}/{name}/")
        for name in sorted(os.listdir(os.path.join(root, parent))):
            if os.path.isdir(os.path.join(root, parent, name)) and name not in names and name != "__pycache__":
                found.append(f"{parent}/{name}/:1: a sub-room that docs/architecture.md does not list")
    for room in rooms:
        if os.path.isdir(os.path.join(root, room)) and not os.path.isfile(os.path.join(root, room, "README.md")):
            found.append(f"{room}/:1: a room without a README.md")
    return found


def main():
    found = check(sys.argv[1])
    print("\n".join(found) if found else "the house is in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
