# SPDX-License-Identifier: Apache-2.0
"""Faults outside the communication of a program: what one rank does instead of its work.

Each idiom has the classes of verdicts that are right, and its code in C ("c"; also used for C++ unless "c++" is there), C++,
Fortran and Python ("py"). " @" at the end of a line marks the lines that a verdict may name. Lines before "---" go before the
function. {size}, {rank} and {step} are variables of the program.
"""
HANG = {"non-communication hang"}
CRASH = {"crash"}
# A rank of Python that leaves by SystemExit is in MPI_Finalize, while the others wait for it in other calls. If MPI_Finalize does
# not wait for them, the exit code ends the job.
LEFT = {"mismatch", "unmatched message", "deadlock", "crash"}


class Idiom:  # pylint: disable=too-few-public-methods
    """`place`: the verdict can show where (not if a signal from outside ends the rank). `flags`: of the compiler."""

    def __init__(self, classes, place=True, flags="", no_place=(), only_rank=None, **code):  # pylint: disable=too-many-arguments,too-many-positional-arguments
        self.classes, self.place, self.flags, self.no_place, self.only_rank = classes, place, flags, set(no_place), only_rank
        names = {"c": "c", "cxx": "c++", "f": "fortran", "py": "python"}
        self.code = {names[name]: text for name, text in code.items()}

    def in_language(self, language):
        return self.code.get(language) or (self.code.get("c") if language == "c++" else None)


def mpi_error(c, f, py, classes=frozenset(CRASH)):
    return Idiom(set(classes), c=c + "; @", f=f"call {f} @", py=py + " @", no_place={"thread", "op", "atexit", "openmp", "errhandler"})


IDIOMS = {
    "null pointer": Idiom(CRASH, c="volatile double *volatile cells = NULL;\ncells[{step}] = 1.0; @",
                          f="double precision, pointer, volatile :: cells(:)\n---\ncells => null()\ncells({step} + 1) = 1 @",
                          py="import ctypes\nctypes.string_at({step}) @"),
    "out of bounds": Idiom(CRASH, c="volatile long index = 1L << 40;\n((volatile double *)big_field)[index] = {step}; @",
                           cxx="std::vector<double> cells(3);\ncells.at((size_t)({step} + 3)) = 1; @",
                           f="integer :: last\ndouble precision :: cells(4)\n---\nlast = {size} + {step}\ncells(last + 1) = 1 @\nif (cells(1) > 1d300) print *, cells",
                           py="cells = [0.0] * 3\ncells[{step} + 3] = 1.0 @", flags="-fcheck=all", no_place={"atexit", "thread"}),
    "division by zero": Idiom(CRASH, c="volatile int parts = 0;\nparts = {step} / parts; @",
                              f="integer, volatile :: parts\n---\nparts = 0\nparts = {step} / parts @", py="width = {step} / ({step} - {step}) @", no_place={"atexit", "thread"}),
    "stack overflow": Idiom(CRASH, no_place={"atexit", "thread", "openmp"},
                            c="static double descend(int level) { @\n    volatile char row_of_cells[4096];\n    row_of_cells[level % 4096] = 1; @\n"
                            "    return descend(level + 1) + row_of_cells[0]; @\n}\n---\ndescend({step}); @caller",
                            py="def descend(level):\n    return descend(level + 1) + 1 @\n---\ndescend({step})"),
    "double free": Idiom(CRASH, c="void *volatile block = malloc(64);\nfree(block);\nfree(block); @",
                         f="double precision, allocatable :: cells(:)\n---\nallocate (cells(5))\ndeallocate (cells)\ndeallocate (cells) @"),
    "assertion": Idiom(CRASH, c="assert({step} < 0); @", py="assert {step} < 0, \"negative volume\" @", no_place={"atexit", "thread"}),
    "abort": Idiom(CRASH, c="abort(); @", f="call abort() @", py="import os\nos.abort() @"),
    "exit": Idiom(CRASH, c="exit(1); @", f="call exit(1) @", no_place={"atexit"}),
    "exit without cleaning up": Idiom(CRASH, place=False, c="_exit(3); @", py="import os\nos._exit(3) @"),
    "end of the program": Idiom(CRASH, f="stop 3 @", no_place={"openmp"}),
    "error stop": Idiom(CRASH, f="error stop 'negative volume' @"),
    "unallocated": Idiom(CRASH, f="double precision, allocatable :: cells(:)\n---\ndeallocate (cells) @"),
    "missing input file": Idiom(CRASH, f="open (unit=12, file='input.nml', status='old', action='read') @", py="open(\"input.nml\", encoding=\"utf-8\").read() @", no_place={"atexit", "thread"}),
    "end of file": Idiom(CRASH, f="integer :: value\n---\nopen (unit=12, file='/dev/null', action='read')\nread (12, *) value @"),
    "sys.exit": Idiom(LEFT, place=False, py="import sys\nsys.exit(1) @", no_place={"thread", "atexit"}),
    "exception": Idiom(CRASH, cxx="throw std::runtime_error(\"negative volume\"); @", py="raise ValueError(\"negative volume\") @", no_place={"thread", "atexit"}),
    "missing key": Idiom(CRASH, cxx="std::map<int, int> owners;\nowners.at({step}) = 1; @", py="owners = {}\nowners[{step}] += 1 @", no_place={"thread", "atexit"}),
    "None": Idiom(CRASH, py="mesh = None\nmesh.refine() @", no_place={"thread", "atexit"}),
    "MPI_Abort": Idiom(CRASH, c="MPI_Abort(MPI_COMM_WORLD, 3); @", f="call MPI_Abort(MPI_COMM_WORLD, 3, ierr) @", py="MPI.COMM_WORLD.Abort(3) @", no_place={"thread", "atexit", "openmp"}),
    "killed": Idiom(CRASH, place=False, c="kill(getpid(), SIGKILL); @", f="call kill(getpid(), 9) @", py="import os\nos.kill(os.getpid(), 9) @"),
    "terminated": Idiom(CRASH, place=False, c="kill(getpid(), SIGTERM); @\npause(); @", f="call kill(getpid(), 15) @", py="import os\nos.kill(os.getpid(), 15) @", no_place={"atexit"}),
    "stopped": Idiom({"stopped"}, place=False, c="kill(getpid(), SIGSTOP); @", f="call kill(getpid(), 19) @", py="import os\nos.kill(os.getpid(), 19) @"),
    "lock taken twice": Idiom(HANG, c="static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;\n---\npthread_mutex_lock(&table_lock);\npthread_mutex_lock(&table_lock); @",
                              cxx="static std::mutex table_lock;\n---\nstd::lock_guard<std::mutex> first(table_lock);\nstd::lock_guard<std::mutex> second(table_lock); @",
                              f="integer(omp_lock_kind) :: table_lock\n---\ncall omp_init_lock(table_lock)\ncall omp_set_lock(table_lock)\ncall omp_set_lock(table_lock) @",
                              py="import threading\ntable_lock = threading.Lock()\ntable_lock.acquire()\ntable_lock.acquire() @", flags="-fopenmp"),
    "condition never signalled": Idiom(HANG, c="static pthread_mutex_t ready_lock = PTHREAD_MUTEX_INITIALIZER;\nstatic pthread_cond_t ready = PTHREAD_COND_INITIALIZER;\n---\n"
                                       "pthread_mutex_lock(&ready_lock);\npthread_cond_wait(&ready, &ready_lock); @",
                                       cxx="std::mutex ready_lock;\nstd::condition_variable ready;\nstd::unique_lock<std::mutex> holder(ready_lock);\nready.wait(holder); @",
                                       py="import threading\nready = threading.Condition()\nwith ready:\n    ready.wait() @"),
    "value never set": Idiom(HANG, cxx="std::promise<int> answer;\nanswer.get_future().get(); @", py="import queue\nqueue.Queue().get() @"),
    "infinite loop": Idiom(HANG, c="volatile int cursor = 0;\nwhile (cursor < 10) { @\n    cursor += ({step} >= 0) ? 1 : 2; @\n    if (cursor == 9) cursor = 0; @\n}",
                           f="integer, volatile :: cursor\n---\ncursor = 0\ndo while (cursor < 10) @\n    cursor = cursor + 1 @\n    if (cursor == 9) cursor = 0 @\nend do @",
                           py="cursor = 0\nwhile cursor < 10: @\n    cursor += 1 @\n    if cursor == 9: @\n        cursor = 0 @"),
    "not a number": Idiom(HANG, c="volatile double error = 0;\nerror = error / error;\nwhile (!(error < 1e-9)) @\n    error = 0.5 * error; @",
                          f="double precision, volatile :: error\n---\nerror = 0\nerror = error / error\ndo while (.not. (error < 1d-9)) @\n    error = 0.5d0 * error @\nend do @",
                          py="error = float(\"nan\")\nwhile not error < 1e-9: @\n    error *= 0.5 @"),
    "sleep": Idiom(HANG, c="sleep(1000); @", cxx="std::this_thread::sleep_for(std::chrono::seconds(1000)); @", f="call sleep(1000) @", py="import time\ntime.sleep(1000) @"),
    "empty pipe": Idiom(HANG, c="int ends[2];\nchar letter;\nif (pipe(ends) != 0) return;\nif (read(ends[0], &letter, 1) < 0) return; @",
                        py="import os\nends = os.pipe()\nos.read(ends[0], 1) @"),
    "FIFO without a writer": Idiom(HANG, c="mkfifo(\"queue.fifo\", 0600);\nif (open(\"queue.fifo\", O_RDONLY) < 0) return; @",
                                   f="call execute_command_line('mkfifo queue.fifo')\nopen (unit=12, file='queue.fifo', action='read') @",
                                   py="import os\nos.mkfifo(\"queue.fifo\")\nopen(\"queue.fifo\", encoding=\"utf-8\").read() @"),
    "standard input": Idiom(HANG, only_rank=0, c="char letter;\nif (read(0, &letter, 1) < 0) return; @", f="integer :: value\n---\nread (*, *) value @", py="import sys\nsys.stdin.readline() @"),
    "file lock": Idiom(HANG, c="int first = open(\"table.lock\", O_CREAT | O_RDWR, 0600);\nint second = open(\"table.lock\", O_RDWR);\nflock(first, LOCK_EX);\nflock(second, LOCK_EX); @",
                       py="import fcntl\nfirst = open(\"table.lock\", \"w\", encoding=\"utf-8\")\nsecond = open(\"table.lock\", \"w\", encoding=\"utf-8\")\n"
                       "fcntl.flock(first, fcntl.LOCK_EX)\nfcntl.flock(second, fcntl.LOCK_EX) @"),
    "file that never appears": Idiom(HANG, c="while (access(\"mesh.ready\", F_OK) != 0) @\n    usleep(100000); @",
                                     f="logical :: ready\n---\nready = .false.\ndo while (.not. ready) @\n    inquire (file='mesh.ready', exist=ready) @\n    call sleep(1) @\nend do @",
                                     py="import os\nimport time\nwhile not os.path.exists(\"mesh.ready\"): @\n    time.sleep(0.1) @"),
    "child that hangs": Idiom(HANG, c="if (system(\"sleep 1000\") != 0) return; @", f="call execute_command_line('sleep 1000') @", py="import os\nos.system(\"sleep 1000\") @"),
    "process that does not end": Idiom(HANG, c="pid_t child = fork();\nif (child == 0) {\n    for (;;) pause();\n}\nwaitpid(child, NULL, 0); @",
                                       py="import subprocess\nsubprocess.run([\"sleep\", \"1000\"], check=False) @"),
    "thread that does not end": Idiom(HANG, c="static void *serve_forever(void *argument) {\n    for (;;) pause();\n    return argument;\n}\n---\npthread_t helper;\n"
                                      "pthread_create(&helper, NULL, serve_forever, NULL);\npthread_join(helper, NULL); @",
                                      cxx="std::thread helper([] { for (;;) pause(); });\nhelper.join(); @",
                                      py="import threading\nhelper = threading.Thread(target=threading.Event().wait, daemon=True)\nhelper.start()\nhelper.join() @"),
    "bad rank": mpi_error("MPI_Send(&big_field[0], 1, MPI_DOUBLE, {size} + 3, 5, MPI_COMM_WORLD)", "MPI_Send(big_field, 1, MPI_DOUBLE_PRECISION, {size} + 3, 5, MPI_COMM_WORLD, ierr)",
                          "MPI.COMM_WORLD.send(1, {size} + 3)"),
    "bad count": mpi_error("MPI_Send(&big_field[0], -1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD)", "MPI_Send(big_field, -1, MPI_DOUBLE_PRECISION, 0, 5, MPI_COMM_WORLD, ierr)",
                           "MPI.COMM_WORLD.Send([bytearray(8), -1, MPI.DOUBLE], 0)"),
    "bad type": mpi_error("MPI_Send(&big_field[0], 1, MPI_DATATYPE_NULL, 0, 5, MPI_COMM_WORLD)", "MPI_Send(big_field, 1, MPI_DATATYPE_NULL, 0, 5, MPI_COMM_WORLD, ierr)",
                          "MPI.COMM_WORLD.Send([bytearray(8), 1, MPI.DATATYPE_NULL], 0)"),
    "truncation": mpi_error("MPI_Sendrecv(&big_field[0], 64, MPI_DOUBLE, {rank}, 5, &big_field[64], 4, MPI_DOUBLE, {rank}, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE)",
                            "MPI_Sendrecv(big_field, 64, MPI_DOUBLE_PRECISION, {rank}, 5, big_field(65), 4, MPI_DOUBLE_PRECISION, {rank}, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)",
                            "MPI.COMM_WORLD.Sendrecv(bytearray(64), {rank}, 5, bytearray(4), {rank}, 5)"),
    "bad root": mpi_error("MPI_Bcast(&big_field[0], 1, MPI_DOUBLE, {size}, MPI_COMM_WORLD)", "MPI_Bcast(big_field, 1, MPI_DOUBLE_PRECISION, {size}, MPI_COMM_WORLD, ierr)",
                          "MPI.COMM_WORLD.bcast(1, {size})", {"crash", "mismatch"}),  # the others are not in this broadcast
}
