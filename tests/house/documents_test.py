#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents_test.py ROOT: checks that what the pages name in back quotes exists; exit code 1 if something does not.

The pages are README.md, CONTRIBUTING.md, docs/ and the README.md of every folder. Each span in back quotes is split into words:
a path is in the tree, an option and an identifier occur in the sources, a variable and its value are in
base/variables_table.cpp. Commands and options of `bestride` are checked in code blocks, too, and so are links between pages and
the messages in docs/troubleshooting.md. That a name occurs in the sources does not show that the sentence about it is true.
"""
import fnmatch
import os
import pathlib
import re
import sys

OTHER_SOFTWARE = {"docs/decisions/open_mpi_engine.md"}  # pages about the sources of others: only their links are checked
# What the tree does not have, and why a page names it: whole words as regular expressions.
EXCEPTIONS = {
    r"-|->|\.def|_block|_REDUCTION|_UNSUPPORTED|\.\.\._[A-Z]+": "abbreviations",
    r"(\.\.\.|\.)/(your_program|program|libbestride\.so)|Directory|solver\+0x1a2b|pipe_read": "examples of a user's program and of output",
    r"mpif?\.h|MPIX_(Stream)?|atomic_rmw_gacc|errors/coll/\*length|t_pread|i?allgatherv_intra_(sched_)?ring\.c": "MPI libraries and their tests",
    r"BESTRIDE_EVERYWHERE|BESTRIDE_RAILS|bed_mpiexec": "bench/README.md: former names, in bench/results; a file that the reader writes",
    r"ucp_dt_destroy|cuIpcOpenMemHandle|CUDA_VISIBLE_DEVICES": "functions and variables of UCX and CUDA",
    r"-DCMAKE_.*|\.dynsym|dlvsym|LD_DEBUG=reloc|-pg|-N|-rl": "the linker, the compiler and other tools",
}
OTHERS_MESSAGES = ("Directory does not exist", "does not come first in initial library list", "built-in, for any MPI library")
AT_RUN_TIME = r"[/~$]|bestride-|\*\.|<|build/|bin/|lib(64)?/|libexec/|share/"  # beginnings of paths that are made or installed
PAGES = r"(README|CONTRIBUTING)\.md|docs/.*\.md|.*/README\.md"
FILE = r".*\.(cpp|hpp|h|c|cu|py|sh|md|tsv|def|in|json|cmake|txt|html|env|supp|f90|F90)"
TEXT = re.compile(FILE + r"|.*/(scripts/[\w-]+|\.[\w-]+)")
NO_SOURCE = re.compile(r".*\.(md|json)$|tests/house/")  # what they name need not exist


def tree_of(root):
    """The paths of all files, relative to `root`; not of build folders."""
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [s for s in subfolders if s not in (".git", "__pycache__") and not (folder == root and s.startswith("build"))]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)


def read(root, path):
    return pathlib.Path(root, path).read_text(encoding="utf-8", errors="replace")


class Sources:
    """What the tree has: paths, words, options, variables with their values, commands of `bestride` with their options."""

    def __init__(self, root):
        files = list(tree_of(root))
        self.pages = {path: read(root, path) for path in sorted(files) if re.fullmatch(PAGES, path)}
        self.paths = set(files) | {str(folder) for path in files for folder in pathlib.PurePath(path).parents}
        text = {path: read(root, path) for path in files if TEXT.fullmatch("/" + path) and not NO_SOURCE.match(path)}
        every = "\n".join(text.values())
        self.text = re.sub(r'"\s*\n\s*"', "", every)  # adjacent string literals as one
        self.words = set(re.findall(r"\w+", every)) | {os.path.basename(path).split(".")[0] for path in files}
        self.options = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", every))
        rows = re.findall(r'\{"(BESTRIDE_\w+)", (\w+), "[^"]*",\s*"([^"]*)"', text["base/variables_table.cpp"])
        self.values = {name: values.split("|") if kind == "choice" else None for name, kind, values in rows}
        built = "\n".join(part for path, part in text.items() if path.endswith((".txt", ".cmake")))
        self.macros = set(re.findall(r"BESTRIDE_\w+", built)) | set(re.findall(r"#define (BESTRIDE_\w+)", every))
        self.commands = {}
        command = {path: part for path, part in text.items() if path.startswith("cli/")}
        for path, part in command.items():
            for name in re.findall(r'add_subcommand\(\s*"(\w+)"', part):
                folders = (os.path.dirname(path) + "/", "cli/common/")
                own = "".join(part for path, part in command.items() if path.startswith(folders))
                self.commands[name] = set(re.findall(r"--[a-z][\w-]*", own)) | {"--help"}

    def has_path(self, path):
        """From the root or a folder below it, with or without the ending of a file; <name> stands for anything."""
        path = re.sub(r"<[^>]*>", "*", path).strip("/")
        return any(fnmatch.filter(self.paths, pattern) for pattern in (path, path + ".*", "*/" + path, "*/" + path + ".*"))

    def has(self, word):
        variable = re.match(r"(?:-D)?(BESTRIDE_\w*\w)(?:=(.+))?$", word)
        if any(re.fullmatch(pattern, word) for pattern in EXCEPTIONS) or re.match(AT_RUN_TIME, word):
            return True
        if variable and variable.group(1) in self.values:
            values = self.values[variable.group(1)]
            return not values or variable.group(2) in (None, "...") or all(value in values for value in variable.group(2).split("|"))
        if variable:
            return variable.group(1) in self.macros
        if word.startswith("-"):
            return word.split("=")[0] in self.options
        if re.fullmatch(FILE + r"|\.[\w-]+", word) or "/" in word and re.fullmatch(r"[\w./*<>-]+", word):
            return self.has_path(word)
        parts = re.findall(r"[A-Za-z_]\w+", re.sub(r"<[^>]*>", "", word))
        return all(part in self.words or part.endswith("_") and any(known.startswith(part) for known in self.words) for part in parts)


def unfold(text):
    """a{b,c}d as [abd, acd]"""
    braces = re.fullmatch(r"(.*?)\{([^{}]*,[^{}]*)\}(.*)", text)
    return [braces.group(1) + part + braces.group(3) for part in braces.group(2).split(",")] if braces else [text]


def wrong_commands(code, sources):
    """What is wrong with the commands of `bestride` in a span or in a line of a code block, up to the job's own command."""
    for name, arguments in re.findall(r"(?:^|/)bestride (\w+)(.*)", code):
        if name not in sources.commands:
            yield f"command bestride {name}"
            continue
        arguments = re.split(r"\s(?:mpiexec|srun|#|\./)", re.sub(r"'[^']*'", "", arguments))[0]
        yield from (f"option {option} of bestride {name}" for option in re.findall(r"(?<!\S)--[a-z][\w-]*", arguments)
                    if option not in sources.commands[name])


def missing_messages(span, sources):
    """The parts of a message between its variable parts (..., N, numbers, quoted words) that no source has."""
    is_command = re.match(r"bestride |-|env |[./]|pip |srun |docker |mpiexec ", span)
    parts = (part.strip(" :;,.()") for part in re.split(r"\.\.\.|<[^>]*>|\bN\b|\d+|'[^']*'", span) if not is_command)
    return [part for part in parts if " " in part and part not in sources.text and not part.endswith(OTHERS_MESSAGES)]


def missing_in(page, text, sources):
    """Yields (line number, what is missing) for one page."""
    prose = re.sub(r"^```.*?^```|^    [^\n]*", lambda code: "\n" * code.group().count("\n"), text, flags=re.M | re.S)
    for span in re.finditer(r"`([^`]+)`", prose) if page not in OTHER_SOFTWARE else ():
        line = prose.count("\n", 0, span.start()) + 1
        words = [word for words in unfold(span.group(1)) for word in re.findall(r"[^\s()\[\],;|'\"]+", words)]
        text_of_span = " ".join(span.group(1).split())
        yield from ((line, word) for word in words if not sources.has(word.rstrip(".:!?+")))
        yield from ((line, wrong) for wrong in wrong_commands(text_of_span, sources))
        if page == "docs/troubleshooting.md":
            yield from ((line, f"message '{part}'") for part in missing_messages(text_of_span, sources))
    for line, code in enumerate(text.splitlines(), 1):
        if code.startswith("    "):
            yield from ((line, wrong) for wrong in wrong_commands(code.strip(), sources))
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", code):
            target = os.path.normpath(os.path.join(os.path.dirname(page), link))
            if target not in sources.paths:
                yield line, f"page {target}"


def check(root):
    """All violations as 'page:line: what is missing'."""
    sources = Sources(root)
    return [f"{page}:{line}: there is no {name}" for page, text in sources.pages.items()
            for line, name in missing_in(page, text, sources)]


def main():
    found = check(os.path.abspath(sys.argv[1]))
    print("\n".join(found) if found else "what the pages name exists")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
