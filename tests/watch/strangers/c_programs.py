# SPDX-License-Identifier: Apache-2.0
"""Writes a program in C or C++."""
from languages import C, INTEGERS, Writer

PLACES = {"c": ("main", "deep", "library", "plugin", "qsort", "op", "errhandler", "atexit", "openmp", "thread"),
          "c++": ("main", "deep", "lambda", "method", "library", "plugin", "op", "openmp", "thread", "destructor")}
HEADERS = """#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <mpi.h>
"""
CXX_HEADERS = """#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>
"""
NOTE = """// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int note_fault(int rank) {
    int file = open("fault.time", O_CREAT | O_EXCL | O_WRONLY, 0600);
    if (file < 0) return 0;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    dprintf(file, "%ld.%09ld %d\\n", (long)now.tv_sec, now.tv_nsec, rank);
    close(file);
    return 1;
}
"""
STATE = """static int rank, size, steps = 24;
static double big_field[60000], a[60000], b[60000], c0[60000], c1[60000], c2[60000], c3[60000];
enum { wide_size = 240000 };
static double wide[wide_size], outgoing[wide_size];
static MPI_Request req[4] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
static MPI_Status status;
static MPI_Comm row, column, inter;
static MPI_Win win;
static MPI_File file;
static MPI_Group everyone, sources, targets;
"""


def body_of(choice, condition, arguments="rank"):
    """(what goes before the function, the lines of its body)."""
    before, _, code = ("\n" + choice.idiom.in_language(choice.language)).rpartition("---\n")
    code = code.strip("\n").replace("{size}", "size").replace("{rank}", "rank").replace("{step}", "step")
    lines = "\n".join("    " + line for line in code.split("\n"))
    return before.strip("\n"), f"if ({condition} && note_fault({arguments})) {{\n{lines}\n}}"


def indented(text):
    return "\n".join("    " + line if line else "" for line in text.split("\n"))


class Place:
    """Where the fault is: `before`: definitions; `call`: what stands for the work of a rank; `setup`: after MPI_Init;
    `library`: the source of a library; `functions`: from the function with the fault outwards."""

    def __init__(self, choice):
        self.choice, self.cxx = choice, choice.language == "c++"
        self.name, self.middle, self.outer = choice.names
        self.before = self.setup = self.library = ""
        self.functions = [self.name]
        self.needs, self.body = body_of(choice, f"rank == {choice.culprit} && step == {choice.step}")
        if choice.fault == "stack overflow":
            self.functions = ["descend", self.name]
        self.call = f"{self.name}(rank, size, step);"
        getattr(self, "make_" + choice.place.replace("destructor", "atexit"))()
        if self.needs and not self.library:
            self.before = self.needs + "\n\n" + self.before

    def function(self, head, body=None):
        return f"{head} {{\n{indented(body or self.body)}\n}}\n"

    def make_main(self):
        self.functions, self.call = self.functions[:-1], self.body

    def plain(self, prefix="static void"):
        return self.function(f"{prefix} {self.name}(int rank, int size, int step)", "(void)size;\n" + self.body)

    def make_deep(self):
        head = "template <typename Number>\nstatic void {}(int rank, int size, Number step)" if self.cxx else "static void {}(int rank, int size, int step)"
        chain = [head.format(name) + f" {{\n    {inner}(rank, size, step);\n}}\n" for name, inner in ((self.middle, self.name), (self.outer, self.middle))]
        self.before = self.function(head.format(self.name), "(void)size;\n" + self.body) + "\n" + "\n".join(chain)
        if self.cxx:
            self.before = f"namespace model {{\n{self.before}}}\n"
            self.call = f"model::{self.outer}<int>(rank, size, step);"
        else:
            self.call = f"{self.outer}(rank, size, step);"
        self.functions += [self.middle, self.outer]

    def make_lambda(self):
        self.before = f"template <typename Work>\nstatic void for_each_patch(Work work) {{\n    for (int patch = 0; patch < 2; patch++) work(patch);\n}}\n" \
                      f"\nstatic void {self.name}(int rank, int size, int step) {{\n    for_each_patch([=](int patch) {{\n        (void)size;\n        if (patch == 0) return;\n" \
                      f"{indented(indented(self.body))}\n    }});\n}}\n"
        self.functions = self.functions[:-1] + ["operator()", "for_each_patch", self.name]

    def make_method(self):
        self.before = f"struct Solver {{\n    virtual ~Solver() = default;\n    virtual void {self.name}(int rank, int size, int step) = 0;\n}};\n\nstruct Explicit : Solver {{\n" + \
                      indented(self.plain("void").replace("step) {", "step) override {", 1)) + "};\n\nstatic Explicit chosen;\nstatic Solver *solver = &chosen;\n"
        self.call = f"solver->{self.name}(rank, size, step);"

    def make_library(self):
        extern = 'extern "C" ' if self.cxx else ""
        self.library = (self.needs + "\n\n" if self.needs else "") + self.plain(extern + "void")
        self.before = f"{extern}void {self.name}(int rank, int size, int step);\n"

    def make_plugin(self):
        self.make_library()
        self.before = f"typedef void Work(int, int, int);\nstatic Work *{self.name}_of_plugin;\n"
        self.setup = f'void *plugin = dlopen("./libmodel.so", RTLD_NOW);\nif (plugin == NULL) {{\n    fprintf(stderr, "%s\\n", dlerror());\n    return 1;\n}}\n' \
                     f'{self.name}_of_plugin = (Work *)dlsym(plugin, "{self.name}");'
        self.call = f"{self.name}_of_plugin(rank, size, step);"

    def make_qsort(self):
        body = self.body.replace("return;", "return 0;")
        self.before = self.function(f"static int {self.name}(const void *left_key, const void *right_key)", body + "\nreturn *(const int *)left_key - *(const int *)right_key;") + \
            f"\nstatic void {self.outer}(void) {{\n    int keys[3] = {{2, 1, 0}};\n    qsort(keys, 3, sizeof keys[0], {self.name});\n}}\n"
        self.call = f"{self.outer}();"
        self.functions.append(self.outer)

    def make_op(self):
        _, body = body_of(self.choice, f"step == {self.choice.step}")  # the first rank that computes is the one
        self.before = "static MPI_Op sum_of_cells;\n\n" + self.function(
            f"static void {self.name}(void *in, void *out, int *count, MPI_Datatype *type)",
            "(void)type;\n" + body + "\nfor (int k = 0; k < *count; k++) ((double *)out)[k] += ((double *)in)[k];")
        self.setup = f"MPI_Op_create({self.name}, 1, &sum_of_cells);"
        self.call = "MPI_Allreduce(a, b, 2, MPI_DOUBLE, sum_of_cells, MPI_COMM_WORLD);"

    def make_errhandler(self):
        self.before = "static MPI_Comm faulty;\n\n" + self.function(f"static void {self.name}(MPI_Comm *comm, int *code, ...)", "(void)comm;\n(void)code;\n" + self.body)
        self.setup = f"MPI_Errhandler handler;\nMPI_Comm_dup(MPI_COMM_WORLD, &faulty);\nMPI_Comm_create_errhandler({self.name}, &handler);\nMPI_Comm_set_errhandler(faulty, handler);"
        self.call = f"if (step == {self.choice.step}) MPI_Send(a, 1, MPI_DOUBLE, size + 3, 5, faulty);"

    def make_atexit(self):
        _, body = body_of(self.choice, f"rank == {self.choice.culprit}")
        if self.cxx:
            self.before = f"struct Cache {{\n    static void {self.name}() {{\n{indented(indented(body))}\n    }}\n    ~Cache() {{ {self.name}(); }}\n}};\n"
            self.setup = "static Cache cache;"
        else:
            self.before, self.setup = self.function(f"static void {self.name}(void)", body), f"atexit({self.name});"
        self.call = ""

    def make_openmp(self):
        self.before = self.plain()
        self.call = f"#pragma omp parallel num_threads(2)\n{{\n    if (omp_get_thread_num() == 1) {self.name}(rank, size, step);\n}}"

    def make_thread(self):
        if self.cxx:
            self.before, self.call = self.plain(), f"std::thread({self.name}, rank, size, step).join();"
            return
        body = self.body.replace("return;", "return NULL;")
        self.before = self.function(f"static void *{self.name}(void *argument)", body + "\nreturn argument;") + \
            f"\nstatic void {self.outer}(void) {{\n    pthread_t worker;\n    pthread_create(&worker, NULL, {self.name}, NULL);\n    pthread_join(worker, NULL);\n}}\n"
        self.call = f"{self.outer}();"


# The initial thread ends before the program does, but after MPI_Init, since UCX reads /proc/self, which shows no more then.
SECOND_THREAD = """
static void *second_thread(void *unused) {
    (void)unused;
    exit(program());
}

int main(int argc, char **argv) {
    pthread_t thread;
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, NULL, second_thread, NULL);
    pthread_exit(NULL);
}
"""


def write(choice, _):  # pylint: disable=too-many-locals,too-many-branches,too-many-statements
    cxx = choice.language == "c++"
    place = Place(choice) if choice.idiom else None
    declaration = ('extern "C" ' if cxx else "") + "int note_fault(int rank);\n"
    head = "// SPDX-License-Identifier: Apache-2.0\n" + HEADERS + (CXX_HEADERS if cxx else "") + "\n" + declaration
    library = Writer()
    if place and place.library:
        library.write(head + "\nstatic double big_field[128];\n" + "\n" + place.library)
    out = Writer()
    out.write(head + STATE.rstrip("\n"))
    out.write("static int " + ", ".join(INTEGERS) + ";\n")
    if place and place.before:
        out.write(place.before)
    inside = {"main": False}
    program = "program" if choice.in_second_thread else "main"

    def hook(language):
        language.out.write(f"usleep({1000 * choice.pace});")
        if place and place.call:
            language.out.write(place.call.replace("return;", "return 1;") if inside["main"] and choice.place == "main" else place.call)
            if choice.place == "main":
                place.functions.append(program if inside["main"] else inside["name"])

    translator = C(out, hook)
    for function in choice.tree.body[:-1]:
        inside["name"] = function.name
        translator.function(function.name, function.body)
        out.write("")
    inside["main"] = True
    out.write("static int program(void) {" if choice.in_second_thread else "int main(int argc, char **argv) {")
    out.depth = 1
    if choice.fault == "late MPI_Init":
        out.write(f'if (atoi(getenv("PMI_RANK")) == {choice.culprit}) {{\n    note_fault({choice.culprit});\n    sleep(1000);\n}}')
    if not choice.in_second_thread:
        out.write("MPI_Init(&argc, &argv);")
    out.write("MPI_Comm_rank(MPI_COMM_WORLD, &rank);\nMPI_Comm_size(MPI_COMM_WORLD, &size);")
    out.write(f"n = {choice.n};\nleft = (rank + size - 1) % size;\nright = (rank + 1) % size;")
    if place and place.setup:
        out.write(place.setup)
    for statement in choice.tree.body[-1].body:
        translator.statement(statement)
    if choice.fault == "no MPI_Finalize":
        out.write(f"if (rank == {choice.culprit} && note_fault(rank)) return 0;")
    out.write("MPI_Finalize();\nreturn 0;")
    out.depth = 0
    out.write("}")
    if choice.in_second_thread:
        out.write(SECOND_THREAD.strip("\n"))
    suffix, wrapper = ("cpp", "mpicxx") if cxx else ("c", "mpicc")
    # A function that ends with a call would not be on the stack.
    flags = [choice.optimise, "-fno-optimize-sibling-calls", "-fopenmp", "-pthread", "-w"] + (["-g"] if choice.debug else [])
    build = [["mpicc", "-O1", "-fPIC", "-c", "note.c", "-o", "note.o"]]
    files = {"note.c": NOTE, "program." + suffix: out.text()}
    link = ["note.o", "-ldl"]
    if library.lines:
        files["model." + suffix] = library.text()
        build.append([wrapper, *flags, "-fPIC", "-shared", "model." + suffix, "note.o", "-o", "libmodel.so"])
        if choice.place == "library":
            link += ["-L.", "-lmodel", "-Wl,-rpath,$ORIGIN"]
    build.append([wrapper, *flags, "program." + suffix, "-o", "program", *link])
    functions = place.functions if place else [function.name for function in choice.tree.body]
    marks = [["program." + suffix, line] for line in out.marked.get("", [])] + [["model." + suffix, line] for line in library.marked.get("", [])]
    if choice.expectation:  # the rank may be in another call of the program when it waits
        marks += [["program." + suffix, line] for line in out.marked.get("call", [])]
    return files, build, ["./program"], functions, marks
