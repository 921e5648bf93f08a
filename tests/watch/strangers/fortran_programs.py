# SPDX-License-Identifier: Apache-2.0
"""Writes a program in Fortran."""
from c_programs import NOTE, body_of
from languages import INTEGERS, Fortran, Writer

PLACES = {"fortran": ("main", "deep", "library", "openmp")}
INTERFACE = """interface
    subroutine note_fault(rank) bind(c)
        use iso_c_binding, only: c_int
        integer(c_int), value :: rank
    end subroutine
end interface
"""


def lines_of(choice):
    """(declarations, statements) of the fault."""
    before, body = body_of(choice, "")
    code = "\n".join(line[4:] for line in body.split("\n")[1:-1])
    condition = f"rank == {choice.culprit} .and. step == {choice.step}"
    lines = "\n".join("    " + line for line in code.split("\n"))
    return before, f"if ({condition}) then\n    call note_fault(int(rank, c_int))\n{lines}\nend if"


def uses(binding):
    used = "use iso_c_binding, only: c_int\nuse omp_lib\n"
    return used + ("implicit none\ninclude 'mpif.h'\n" if binding == "mpif.h" else f"use {binding}\nimplicit none\n")


def handle(kind, binding, name):
    return f"type(MPI_{kind}) :: {name}\n" if binding == "mpi_f08" else f"integer :: {name}\n"


def state(choice):
    binding = choice.binding
    text = "integer :: rank, size, ierr, steps = 24, " + ", ".join(INTEGERS) + "\nlogical :: is_set\n"
    text += "double precision :: big_field(60000), a(60000), b(60000), c0(60000), c1(60000), c2(60000), c3(60000)\n"
    text += "integer, parameter :: wide_size = 240000\ndouble precision :: wide(wide_size), outgoing(wide_size)\n"
    text += handle("Comm", binding, "row, column, inter") + handle("Win", binding, "win") + handle("File", binding, "file") + handle("Group", binding, "everyone, sources, targets")
    text += handle("Request", binding, "req(4)")
    return text + ("type(MPI_Status) :: status" if binding == "mpi_f08" else "integer :: status(MPI_STATUS_SIZE)")


def subroutine(out, name, declarations, body, arguments=""):
    out.write(f"subroutine {name}({arguments})")
    if declarations:
        out.write(declarations, 1)
    out.write(body, 1)
    out.write("end subroutine\n")


def write(choice, _):  # pylint: disable=too-many-locals,too-many-branches,too-many-statements
    name, middle, outer = choice.names
    functions, call, library = [name], "", Writer()
    declarations, body = lines_of(choice) if choice.idiom else ("", "")
    if choice.idiom:
        call = {"main": f"block\n{declarations}\n{body}\nend block", "deep": f"call {outer}()", "library": f"call {name}(rank, size, step)",
                "openmp": f"!$omp parallel num_threads(2)\nif (omp_get_thread_num() == 1) call {name}()\n!$omp end parallel"}[choice.place]
    if choice.place == "deep":
        functions += [middle, outer]
    if choice.place == "library":
        library.write(f"subroutine {name}(rank, size, step)")
        library.write(uses(choice.binding), 1)
        library.write("integer, intent(in) :: rank, size, step\ninteger :: ierr\ndouble precision, save :: big_field(128)\n" + declarations, 1)
        library.write(INTERFACE, 1)
        library.write(body, 1)
        library.write("end subroutine")
    out = Writer()
    out.write("module model")
    out.write(uses(choice.binding) + state(choice), 1)
    out.write(INTERFACE + "contains\n", 0)
    if choice.place in ("deep", "openmp"):
        subroutine(out, name, declarations, body)
    if choice.place == "deep":
        subroutine(out, middle, "", f"call {name}()")
        subroutine(out, outer, "", f"call {middle}()")
    inside = {}

    def hook(language):
        language.out.write(f"call execute_pause({1000 * choice.pace})")
        if call:
            language.out.write(call)
        if choice.place == "main":
            functions[:] = [inside["name"]]

    translator = Fortran(out, hook, choice.binding)
    out.write("subroutine execute_pause(microseconds)\n    integer, intent(in) :: microseconds\n    interface\n        integer(c_int) function usleep(count) bind(c)\n"
              "            import c_int\n            integer(c_int), value :: count\n        end function\n    end interface\n"
              "    integer(c_int) :: ignored\n    ignored = usleep(int(microseconds, c_int))\nend subroutine\n")
    for function in choice.tree.body[:-1]:
        inside["name"] = function.name
        translator.function(function.name, function.body)
        out.write("")
    out.write("end module\n\nprogram simulation\n    use model\n    implicit none")
    inside["name"] = "simulation"
    out.depth = 1
    if choice.fault == "late MPI_Init":
        out.write(f"character(len=8) :: number\ncall get_environment_variable('PMI_RANK', number)\nread (number, *) rank\nif (rank == {choice.culprit}) then\n"
                  "    call note_fault(int(rank, c_int))\n    call sleep(1000)\nend if")
    out.write("call MPI_Init(ierr)\ncall MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)\ncall MPI_Comm_size(MPI_COMM_WORLD, size, ierr)")
    out.write(f"n = {choice.n}\nleft = mod(rank + size - 1, size)\nright = mod(rank + 1, size)\nreq = MPI_REQUEST_NULL\n"
              "if (rank == 0) open (unit=11, file='checkpoint.dat', form='unformatted')")
    for statement in choice.tree.body[-1].body:
        translator.statement(statement)
    if choice.fault == "no MPI_Finalize":
        out.write(f"if (rank == {choice.culprit}) then\n    call note_fault(int(rank, c_int))\n    stop\nend if")
    out.write("call MPI_Finalize(ierr)")
    out.depth = 0
    out.write("end program")
    flags = [choice.optimise, "-fno-optimize-sibling-calls", "-fopenmp", "-ffree-line-length-none", "-fallow-argument-mismatch", "-w"] + (["-g"] if choice.debug else [])
    flags += [choice.idiom.flags] if choice.idiom and choice.idiom.flags else []
    build = [["mpicc", "-O1", "-fPIC", "-c", "note.c", "-o", "note.o"]]
    files, link = {"note.c": NOTE, "program.f90": out.text()}, ["note.o"]
    if library.lines:
        files["library.f90"] = library.text()
        build.append(["mpifort", *flags, "-fPIC", "-shared", "library.f90", "note.o", "-o", "libmodel.so"])
        link += ["-L.", "-lmodel", "-Wl,-rpath,$ORIGIN"]
    build.append(["mpifort", *flags, "program.f90", "-o", "program", *link])
    if choice.expectation:
        functions = ["simulation", *(function.name for function in choice.tree.body[:-1])]
    marks = [["program.f90", line] for line in out.marked.get("", [])] + [["library.f90", line] for line in library.marked.get("", [])]
    if choice.expectation:
        marks += [["program.f90", line] for line in out.marked.get("call", [])]
    return files, build, ["./program"], functions, marks
