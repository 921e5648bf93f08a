# SPDX-License-Identifier: Apache-2.0
"""Translates skeletons (skeletons.py) to C, C++, Fortran and Python."""
import abc
import ast
import re

import calls

INTEGERS = ("n", "left", "right", "source", "got", "flag", "target", "columns", "half", "sent", "done", "jobs", "entered", "width", "i", "step")


class Writer:
    """Lines of a source file. A line that ends with " @" or " @word" is one of the lines of the fault (or of another place)."""

    def __init__(self):
        self.lines, self.depth, self.marked = [], 0, {}

    def write(self, text, shift=0):
        for line in text.split("\n"):
            found = re.search(r"(?<=\S) @(\w*)$", line)
            if found:
                line = line[:found.start()]
                self.marked.setdefault(found.group(1), []).append(len(self.lines) + 1)
            self.lines.append("    " * (self.depth + shift) + line if line else "")

    def text(self):
        return "\n".join(self.lines) + "\n"


class Language(abc.ABC):
    """Translation of the statements of a skeleton. `hook` writes the work of a rank."""
    AND, OR, NOT, COMMENT = " && ", " || ", "!", "//"

    def __init__(self, writer, hook):
        self.out, self.hook = writer, hook

    @abc.abstractmethod
    def convert(self, text):
        """A call of the table (calls.py), with its arguments, as a statement of the language."""

    @abc.abstractmethod
    def simple(self, text, mark):
        """Writes a statement on one line."""

    @abc.abstractmethod
    def loop(self, name, first, last, statements):
        """Writes a loop from `first` to `last` - 1."""

    @abc.abstractmethod
    def while_begin(self, test):
        """The first line of a loop."""

    @abc.abstractmethod
    def while_end(self):
        """The last line of a loop."""

    @abc.abstractmethod
    def choice(self, test, mark, then, otherwise):
        """Writes a conditional statement."""

    def try_block(self, arguments, mark):
        """Writes a call that a rank misses because of an exception, which it swallows: (condition, call)."""
        raise ValueError("the language has no exceptions")

    def expression(self, node):  # pylint: disable=too-many-return-statements
        if isinstance(node, ast.Constant):
            return repr(node.value)
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.BinOp):
            return self.operation(self.expression(node.left), node.op, self.expression(node.right))
        if isinstance(node, ast.UnaryOp):
            return f"-{self.expression(node.operand)}"
        if isinstance(node, ast.Compare):
            signs = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: self.NOT_EQUAL}
            return f"{self.expression(node.left)} {signs[type(node.ops[0])]} {self.expression(node.comparators[0])}"
        if isinstance(node, ast.BoolOp):
            return (self.AND if isinstance(node.op, ast.And) else self.OR).join(self.expression(value) for value in node.values)
        raise ValueError(ast.dump(node))

    NOT_EQUAL = "!="

    def operation(self, left, operator, right):
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Mod: "%", ast.FloorDiv: self.DIVIDE}[type(operator)]
        return f"({left} {sign} {right})"

    DIVIDE = "/"

    def body(self, statements):
        self.out.depth += 1
        for statement in statements:
            self.statement(statement)
        self.out.depth -= 1

    def statement(self, node):
        mark = " @" if getattr(node, "fault", False) else ""
        if isinstance(node, ast.For):
            self.loop(node.target.id, *[self.expression(part) for part in ([ast.Constant(0)] + node.iter.args)[-2:]], node.body)
        elif isinstance(node, ast.While):
            self.block(self.while_begin(self.expression(node.test)) + mark, node.body, self.while_end())
        elif isinstance(node, ast.If):
            self.choice(self.expression(node.test), mark, node.body, node.orelse)
        elif isinstance(node, ast.Assign):
            self.simple(f"{node.targets[0].id} = {self.expression(node.value)}", mark)
        elif isinstance(node, ast.Break):
            self.simple(self.BREAK, mark)
        elif isinstance(node, ast.Expr) and node.value.func.id == "hook":
            self.hook(self)
        elif isinstance(node, ast.Expr) and node.value.func.id == "skipped_by_exception":
            self.try_block(node.value.args, mark)
        elif isinstance(node, ast.Expr):
            self.call(node.value, mark or " @call")
        else:
            raise ValueError(ast.dump(node))

    BREAK = "break"

    def block(self, begin, statements, end):
        self.out.write(begin)
        self.body(statements)
        if end:
            self.out.write(end)

    def call(self, node, mark):
        name = node.func.id
        if name not in calls.CALLS:
            self.simple(f"{self.CALL}{name}()" if name != "note" else self.NOTE, "" if mark == " @call" else mark)
            return
        values = {key: calls.NAMES.get(value, (value, value))[self.COLUMN] for key, value in calls.DEFAULTS.items()}
        values |= dict(zip(calls.CALLS[name][0].split(), (self.expression(argument) for argument in node.args)))
        for keyword in node.keywords:
            spelled = self.expression(keyword.value)
            values[keyword.arg] = calls.NAMES.get(spelled, (spelled, spelled))[self.COLUMN]
        for number, part in enumerate(self.form(name).split(";")):
            self.simple(self.convert(part.format(**values)), "" if number else mark)

    CALL, COLUMN, NOTE = "", 0, "note_fault(rank)"

    def form(self, name):
        return calls.CALLS[name][1]


class C(Language):
    """C, and C++ with the C interface of MPI."""
    APPEND = "{ FILE *output = fopen(\"checkpoint.dat\", \"ab\"); fwrite(wide, 8, (size_t)n, output); fclose(output); }"

    def convert(self, text):
        text = re.sub(r"AINT\(", "(MPI_Aint)(", text)
        text = re.sub(r"OFFSET\(", "(MPI_Offset)(", text)
        text = re.sub(r"LIST\((\w+)\)", r"&\1", text)
        return text.replace("APPEND()", self.APPEND)

    def simple(self, text, mark):
        self.out.write(text + ("" if text.endswith("}") else ";") + mark)

    def loop(self, name, first, last, statements):
        self.block(f"for ({name} = {first}; {name} < {last}; {name}++) {{", statements, "}")

    def while_begin(self, test):
        return f"while ({test}) {{"

    def while_end(self):
        return "}"

    def choice(self, test, mark, then, otherwise):
        self.block(f"if ({test}) {{{mark}", then, None if otherwise else "}")
        if otherwise:
            self.block("} else {", otherwise, "}")

    def try_block(self, arguments, mark):
        self.out.write("try {")
        self.out.depth += 1
        self.choice(self.expression(arguments[0]), "", [ast.Expr(ast.Call(ast.Name("note"), [], []))], [])
        self.out.write(f"if ({self.expression(arguments[0])}) throw std::runtime_error(\"no convergence\");")
        self.call(arguments[1], mark)
        self.out.depth -= 1
        self.out.write("} catch (const std::exception &error) {\n    std::fprintf(stderr, \"warning: %s\\n\", error.what());\n}")

    def function(self, name, statements):
        self.block(f"static void {name}(void) {{", statements, "}")


class Fortran(Language):
    """Fortran; `binding` is "mpif.h", "mpi" or "mpi_f08"."""
    AND, OR, NOT_EQUAL, COMMENT, BREAK, CALL, NOTE = " .and. ", " .or. ", "/=", "!", "exit", "call ", "call note_fault(int(rank, c_int))"

    def __init__(self, writer, hook, binding):
        super().__init__(writer, hook)
        self.binding = binding

    def operation(self, left, operator, right):
        return f"mod({left}, {right})" if isinstance(operator, ast.Mod) else super().operation(left, operator, right)

    def convert(self, text):
        text = re.sub(r"AINT\((.*?)\)(?=,)", r"int(\1, MPI_ADDRESS_KIND)", text)
        text = re.sub(r"OFFSET\((.*?)\)(?=, a)", r"int(\1, MPI_OFFSET_KIND)", text)
        text = re.sub(r"LIST\((\w+)\)", r"[\1]", text)
        text = re.sub(r"req\[(\w+)\]", r"req(\1 + 1)", text.replace("&flag", "is_set").replace("&", ""))
        text = text.replace("MPI_DOUBLE", "MPI_DOUBLE_PRECISION").replace("MPI_FLOAT", "MPI_REAL").replace('"', "'")
        if self.binding == "mpi_f08":
            text = re.sub(r"status\.(MPI_\w+)", r"status%\1", text)
        else:
            text = re.sub(r"status\.(MPI_\w+)", r"status(\1)", text)
        if text == "APPEND()":
            return "write (11) wide(1:n)"
        if text.startswith("MPI_"):
            text = "call " + (text[:-1] + ", ierr)").replace("(, ", "(")
        return text

    def simple(self, text, mark):
        self.out.write(text + mark)
        if "is_set" in text:
            self.out.write("flag = merge(1, 0, is_set)")

    def loop(self, name, first, last, statements):
        self.block(f"do {name} = {first}, {last} - 1", statements, "end do")

    def while_begin(self, test):
        return f"do while ({test})"

    def while_end(self):
        return "end do"

    def choice(self, test, mark, then, otherwise):
        self.block(f"if ({test}) then{mark}", then, None if otherwise else "end if")
        if otherwise:
            self.block("else", otherwise, "end if")

    def function(self, name, statements):
        self.block(f"subroutine {name}()", statements, "end subroutine")


class Python(Language):
    """Python with mpi4py; `objects`: pickled objects where there is such a form."""
    AND, OR, COMMENT, COLUMN, DIVIDE = " and ", " or ", "#", 1, "//"

    def __init__(self, writer, hook, objects):
        super().__init__(writer, hook)
        self.objects = objects

    def form(self, name):
        return calls.CALLS[name][3] if self.objects and calls.CALLS[name][3] else calls.CALLS[name][2]

    def convert(self, text):
        return text.replace("APPEND()", 'open("checkpoint.dat", "ab").write(bytes(wide[:1]))')

    def simple(self, text, mark):
        self.out.write(text + mark)

    def loop(self, name, first, last, statements):
        self.block(f"for {name} in range({first}, {last}):", statements, "")

    def while_begin(self, test):
        return f"while {test}:"

    def while_end(self):
        return ""

    def choice(self, test, mark, then, otherwise):
        self.block(f"if {test}:{mark}", then, "")
        if otherwise:
            self.block("else:", otherwise, "")

    def try_block(self, arguments, mark):
        self.out.write("try:")
        self.out.depth += 1
        self.choice(self.expression(arguments[0]), "", [ast.Expr(ast.Call(ast.Name("note"), [], []))], [])
        self.out.write(f"if {self.expression(arguments[0])}:\n    raise ValueError(\"no convergence\")")
        self.call(arguments[1], mark)
        self.out.depth -= 1
        self.out.write("except ValueError as error:\n    print(\"warning:\", error, flush=True)")

    def function(self, name, statements):
        self.out.write(f"def {name}():\n    global " + ", ".join((*INTEGERS, "win, file, row, column, inter, everyone, sources, targets, received")))
        self.body(statements)
