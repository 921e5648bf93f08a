# SPDX-License-Identifier: Apache-2.0
"""Writes a program in Python with mpi4py."""
from c_programs import body_of
from languages import Python, Writer

PLACES = {"python": ("main", "deep", "module", "method", "decorator", "generator", "callback", "thread", "atexit")}
NOTE = '''def note_fault(number):
    try:
        with open("fault.time", "x", encoding="utf-8") as output:
            output.write(f"{time.time():.9f} {number}\\n")
    except FileExistsError:
        pass
'''
# What each place puts before the functions, and what stands for the work of a rank. {name}, {outer}: functions.
FORMS = {
    "main": ("", ""),
    "deep": ("{function}\n\ndef {middle}(rank, size, step):\n    {name}(rank, size, step)\n\n\ndef {outer}(rank, size, step):\n    {middle}(rank, size, step)\n", "{outer}(rank, size, step)"),
    "module": ("", "model.{name}(rank, size, step)"),
    "method": ("class Solver:\n    @staticmethod\n    def prepare():\n        return Solver()\n\n{method}\n", "Solver.prepare().{name}(rank, size, step)"),
    "decorator": ("def timed(function):\n    @functools.wraps(function)\n    def wrapper(*arguments):\n        begin = time.monotonic()\n        result = function(*arguments)\n"
                  "        timed.total = time.monotonic() - begin\n        return result\n    return wrapper\n\n\n@timed\n{function}\n", "{name}(rank, size, step)"),
    "generator": ("{function}\n    yield from range(3)\n", "received = [value for value in {name}(rank, size, step)]"),
    "callback": ("{function}\n    return 0\n", "received = sorted([2, 1], key=lambda value: {name}(rank, size, step))"),
    "thread": ("{function}\n", "worker = threading.Thread(target={name}, args=(rank, size, step))\nworker.start()\nworker.join()"),
    "atexit": ("{function}\n", ""),
}
BUFFERS = "a = {zeros}(60000)\nb = {zeros}(60000)\nc0, c1, c2, c3 = ({zeros}(60000) for _ in range(4))\nwide = {zeros}(240000)\noutgoing = {zeros}(240000)\n"


def work(choice):
    """The function with the fault."""
    condition = f"rank == {choice.culprit}" + ("" if choice.place == "atexit" else f" and step == {choice.step}")
    before, body = body_of(choice, "")
    code = "\n".join(line[4:] for line in body.split("\n")[1:-1])
    lines = f"if {condition}:\n    note_fault(rank)\n" + "\n".join("    " + line for line in code.split("\n"))
    return before, lines


def indented(text):
    return "\n".join("    " + line if line else "" for line in text.split("\n"))


def write(choice, python):  # pylint: disable=too-many-locals,too-many-branches,too-many-statements
    name, middle, outer = choice.names
    out, module, functions, call = Writer(), Writer(), [name], ""
    head = "# SPDX-License-Identifier: Apache-2.0\nimport atexit\nimport functools\nimport threading\nimport time\nfrom array import array\n"
    if choice.numpy:
        head += "\nimport numpy\n"
    out.write(head)
    out.write(NOTE)
    if choice.fault == "late MPI_Init":
        out.write(f"import os\nif int(os.environ[\"PMI_RANK\"]) == {choice.culprit}:\n    note_fault({choice.culprit})\n    time.sleep(1000)\n")
    out.write("from mpi4py import MPI\n")
    if choice.place == "module":
        out.write("import model\n")
    out.write("rank, size, steps = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size, 24")
    out.write(BUFFERS.format(zeros="numpy.zeros" if choice.numpy else "zeros").replace("a =", "zeros = lambda count: array(\"d\", bytes(8 * count))\na =" if not choice.numpy else "a =", 1))
    out.write(f"req = [MPI.REQUEST_NULL] * 4\nstatus = MPI.Status()\nn = {choice.n}\nleft = (rank + size - 1) % size\nright = (rank + 1) % size\n\n")
    if choice.idiom:
        before, lines = work(choice)
        function = (before + "\n\n\n" if before else "") + f"def {name}(rank, size, step):\n{indented(lines)}"
        if choice.place == "main":
            call = (before + "\n" if before else "") + lines
        elif choice.place == "module":
            module.write("# SPDX-License-Identifier: Apache-2.0\nimport time\n\nfrom mpi4py import MPI\n\n")
            module.write(NOTE)
            module.write(function)
        else:
            method = (before + "\n" if before else "") + f"@staticmethod\ndef {name}(rank, size, step):\n{indented(lines)}"
            # A line of the fault keeps its mark; the text after it does not.
            out.write(FORMS[choice.place][0].replace("{function}", function).replace("{method}", indented(method)).replace("{name}", name)
                      .replace("{middle}", middle).replace("{outer}", outer) + "\n")
        call = call or FORMS[choice.place][1].replace("{name}", name).replace("{outer}", outer)
        if choice.place == "atexit":
            out.write(f"atexit.register({name}, rank, size, 0)\n\n")
        if choice.place == "deep":
            functions += [middle, outer]
    inside = {}

    def hook(language):
        language.out.write(f"time.sleep({choice.pace / 1000})")
        if call:
            language.out.write(call)
        if choice.place == "main":
            functions[:] = [inside["name"]]

    translator = Python(out, hook, choice.objects)
    for function in choice.tree.body:
        inside["name"] = function.name
        translator.function(function.name, function.body)
        out.write("")
    out.write("main()")
    if choice.fault == "no MPI_Finalize":
        out.write(f"if rank == {choice.culprit}:\n    import os\n    note_fault(rank)\n    os._exit(0)")
    files = {"program.py": out.text()}
    if module.lines:
        files["model.py"] = module.text()
    if choice.expectation:
        functions = [function.name for function in choice.tree.body]
    if choice.fault == "stack overflow":
        functions = ["descend", *functions]
    marks = [[file, line] for file, writer in (("program.py", out), ("model.py", module)) for line in writer.marked.get("", [])]
    if choice.expectation:
        marks += [["program.py", line] for line in out.marked.get("call", [])]
    return files, [], [python, *(["-m", "mpi4py"] if choice.through_module else []), "program.py"], functions, marks
