#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""declarations_test.py ROOT: prints what a header declares and a file defines that the header may not include; exit code 1 if any.

An include is not the only way to depend on a higher room: a header can declare a class, a function or a variable that a higher
room defines. So each declaration at namespace or class scope of a product header needs a definition in a file of the same room
(or sub-room) or of one that it may include. A function or variable that no file defines is reported too; a class may be opaque.
extern "C" and namespaces other than bestride are those of other libraries. The declarations are read from the
sources, because a unity build puts several sub-rooms into one object file. Functions are told apart by class, name and number of
parameters. Definitions in unnamed namespaces don't count.
"""
import os
import re
import sys

from house_test import TEST, files_of, rooms_of, sub_room_violation, sub_rooms_of

TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|\w+(?:\'\w+)*|::|->|\[\[|\]\]|\.\.\.|<=>|&&|\S', re.S)
COMMENT = re.compile(r'(R"(\w*)\(.*?\)\2"|"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.S)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
NAME = re.compile(r"[A-Za-z_]\w*$")
TYPES = ("class", "struct", "union", "enum")
NO_DECLARATION = ("using", "typedef", "friend", "static_assert", "concept", "asm")
NOT_A_FUNCTION = {"noexcept", "decltype", "alignas", "requires", "__attribute__", "sizeof", "explicit", "throw", "if", "while", "for"}
FUNDAMENTAL = {"void", "int", "unsigned", "bool", "char", "long", "double", "float", "auto"}
SOURCE = (".cpp", ".hpp", ".h", ".c", ".cu")
GENERATED = {"built_in_curves", "bestride_entries_begin", "bestride_entries_end"}  # by built_in_generator.cpp, stubs_*.in
AFTER_PARAMETERS = {"const", "noexcept", "override", "final", "requires", "volatile", "try"}


def tokens_of(text):
    """The tokens of C++ text with their lines, without comments and preprocessor directives."""
    keep_lines = lambda match: match.group(1) if match.lastindex and match.group(1) else " " + "\n" * match.group().count("\n")
    text = DIRECTIVE.sub(lambda match: "\n" * match.group().count("\n"), COMMENT.sub(keep_lines, text))
    line, at, found = 1, 0, []
    for match in TOKEN.finditer(text):
        line += text.count("\n", at, match.start())
        at = match.start()
        found.append((match.group(), line))
    return found


def after_group(words, at):
    """The index after the bracket that closes words[at]."""
    depth = 0
    for index in range(at, len(words)):
        depth += {"(": 1, "{": 1, "[": 1, "[[": 2, ")": -1, "}": -1, "]": -1, "]]": -2}.get(words[index], 0)
        if depth <= 0:
            return index + 1
    return len(words)


def after_angles(words, at):
    """The index after the template arguments that begin at words[at], or `at` + 1 if it is a comparison."""
    depth, index = 0, at
    while index < len(words):
        word = words[index]
        if word in ("(", "[", "{"):
            index = after_group(words, index)
            continue
        depth += {"<": 1, ">": -1}.get(word, 0)
        index += 1
        if depth == 0:
            return index
        if word == ";":
            break
    return at + 1


def plain(words):
    """`words` without attributes, template parameters and template arguments."""
    kept, index = [], 0
    while index < len(words):
        word = words[index]
        if word == "[[" or (word in ("alignas", "__attribute__") and words[index + 1:index + 2] == ["("]):
            index = after_group(words, index if word == "[[" else index + 1)
        elif word == "<" and kept and kept[-1] != "operator" and NAME.match(kept[-1]):
            index = after_angles(words, index)
            if kept[-1] == "template":
                kept.pop()
        else:
            kept.append(word)
            index += 1
    return kept


def arity(words):
    """The number of parameters between the parentheses `words`."""
    words = plain(words)
    if words in ([], ["void"]):
        return 0
    count, index = 1, 0
    while index < len(words):
        if words[index] in ("(", "[", "{"):
            index = after_group(words, index)
            continue
        count += words[index] == ","
        index += 1
    return count


def function_of(words):
    """(name with its class, number of parameters) if the declaration `words`, plain, is of a function, else None."""
    resume = 0
    for index, word in enumerate(words):
        if word in ("=", "{") and "operator" not in words[:index]:
            return None
        if word != "(" or index == 0 or index < resume:
            continue
        if "operator" in words[max(0, index - 6):index]:
            if words[index - 1] == "operator":  # operator()
                continue
            start = len(words[:index]) - 1 - words[:index][::-1].index("operator")
            name = "operator" + "".join(words[start + 1:index])
        elif words[index + 1:index + 2] == ["*"] and words[index - 1] in FUNDAMENTAL:
            return None  # a pointer to a function
        elif words[index + 1:index + 2] and words[index + 1][0] in "\"0123456789":
            return None  # a variable with its initial value
        elif NAME.match(words[index - 1]) and words[index - 1] not in NOT_A_FUNCTION:
            start = index - 1
            following = words[after_group(words, index):][:1]
            if following == ["*"] or (following and NAME.match(following[0]) and following[0] not in AFTER_PARAMETERS):
                resume = after_group(words, index)  # a macro that names a type
                continue
            if following == ["("]:
                return None  # a pointer to a function
            if start and words[start - 1] == "~":
                start -= 1
            name = "".join(words[start:index])
        else:
            return None
        while start >= 2 and words[start - 1] == "::" and NAME.match(words[start - 2]):
            name = words[start - 2] + "::" + name
            start -= 2
        return name, arity(words[index + 1:after_group(words, index) - 1])
    return None


def variable_of(words):
    """The name, with its class, of the variable that the declaration `words`, plain, declares, or None."""
    end = next((index for index, word in enumerate(words) if word in ("=", "{", ",", "[")), len(words))
    if end < 2 or not NAME.match(words[end - 1]) or words[end - 1] in AFTER_PARAMETERS:
        return None
    name, at = words[end - 1], end - 1
    while at >= 2 and words[at - 1] == "::" and NAME.match(words[at - 2]):
        name, at = words[at - 2] + "::" + name, at - 2
    return name


def declarations(text):
    """Yields (line, kind, name, is a definition, is visible to other files) for what `text` declares outside of functions."""
    tokens = tokens_of(text)
    words = [word for word, _ in tokens]
    scopes = []  # (class name or None, whether other files of the project see its names)
    index = start = 0
    prefix = lambda: "".join(name + "::" for name, _ in scopes if name)
    visible = lambda: all(seen for _, seen in scopes)
    in_class = lambda: any(name for name, _ in scopes)

    while index < len(words):
        word = words[index]
        if word == "}" and scopes:
            scopes.pop()
            index += 1
            # A class ends with ';' or with names of variables.
            start = index
            continue
        if word == ":" and index > start and words[start:index] in (["public"], ["private"], ["protected"]):
            index += 1
            start = index
            continue
        if word == "<" and index > start and NAME.match(words[index - 1]):
            index = max(index + 1, after_angles(words, index) if words[index - 1] == "template" else index + 1)
            continue
        if word in ("(", "[", "[["):
            index = after_group(words, index)
            continue
        if word not in (";", "{"):
            index += 1
            continue
        head = plain(words[start:index])
        line = tokens[start][1] if start < len(tokens) else 0
        if word == "{":
            leading = [each for each in head if each not in ("inline", "constexpr", "constinit", "static", "const", "typedef")]
            if head[:1] == ["namespace"] or head[:2] == ["inline", "namespace"]:
                name = head[head.index("namespace") + 1:][:1]
                scopes.append((None, bool(name) and (len(scopes) > 0 or name == ["bestride"])))
                index += 1
                start = index
                continue
            if head[:1] == ["extern"] and len(head) == 2 and head[1].startswith('"'):
                scopes.append((None, False))
                index += 1
                start = index
                continue
            if leading[:1] and leading[0] in TYPES and "(" not in leading and "=" not in leading:
                name = [each for each in leading[1:] if each not in TYPES and each != "final"]
                name = "".join(name[:name.index(":")] if ":" in name else name)
                if name:
                    yield line, "type", prefix() + name, True, visible()
                if leading[0] == "enum":
                    index = after_group(words, index)
                else:
                    scopes.append((name or "?", visible()))
                    index += 1
                start = index
                continue
            function = function_of(head)
            if function:
                # The braces of an initializer of a member belong to the constructor's head.
                before = words[index - 1]
                if ":" in head and NAME.match(before) and before not in ("const", "noexcept", "override", "final", "try"):
                    index = after_group(words, index)
                    continue
                shared = visible() and not (head[:1] == ["static"] and not in_class())
                yield line, "function", (prefix() + function[0], function[1]), True, shared
                index = after_group(words, index)
                start = index
                continue
            index = after_group(words, index)  # an initializer
            continue
        # word == ";"
        of_another_library = head[:1] == ["extern"] and head[1:2] == ['"C"']
        if head and head[0] not in NO_DECLARATION and not of_another_library:
            function = function_of(head)
            if head[0] in TYPES and "(" not in head and (len(head) == 2 or (head[0] == "enum" and ":" in head)):
                yield line, "type", prefix() + head[1 if head[1] not in TYPES else 2], False, visible()
            elif function:
                if not (head[-2:] in (["=", "0"], ["=", "default"], ["=", "delete"])):
                    yield line, "function", (prefix() + function[0], function[1]), False, visible()
                elif head[-1] == "default":
                    yield line, "function", (prefix() + function[0], function[1]), True, visible()
            elif (name := variable_of(head)) and (not in_class() or "static" in head):
                defines = bool({"inline", "constexpr"} & set(head)) if in_class() else "extern" not in head
                yield line, "variable", prefix() + name, defines, visible() and (in_class() or "static" not in head)
        index += 1
        start = index


def violations(root):
    """All violations as 'file:line: rule', and the number of declarations that were checked."""
    with open(os.path.join(root, "docs/architecture.md"), encoding="utf-8") as page:
        text = page.read()
    rooms, sub_rooms = rooms_of(text), sub_rooms_of(text)
    declared, defined = [], {}
    for path in files_of(root):
        room = path.split("/")[0]
        if room not in rooms or not path.endswith(SOURCE) or TEST.match(path):
            continue
        with open(os.path.join(root, path), encoding="utf-8") as file:
            for line, kind, name, is_definition, visible in declarations(file.read()):
                if is_definition and visible:
                    defined.setdefault((kind, name), set()).add(path)
                elif visible and path.endswith((".hpp", ".h")):
                    declared.append((path, line, kind, name))
    found = []
    for path, line, kind, name in declared:
        room = path.split("/")[0]
        places = defined.get((kind, name), set())
        near = any((at.split("/")[0] == room or at.split("/")[0] in rooms[room]) and not sub_room_violation(path, at, sub_rooms)
                   for at in places)
        shown = name if isinstance(name, str) else name[0]
        if places and not near:
            found.append(f"{path}:{line}: declares {shown}, which is defined above it, in {', '.join(sorted(places))}")
        elif not places and kind != "type" and shown not in GENERATED:
            found.append(f"{path}:{line}: declares {shown}, which no file of the product defines")
    return found, len(declared)


def main():
    found, checked = violations(sys.argv[1])
    print("\n".join(found) if found else f"{checked} declarations are defined where they are declared, or below")
    return 1 if found or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
