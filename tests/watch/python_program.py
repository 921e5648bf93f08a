# SPDX-License-Identifier: Apache-2.0
"""A Python program that uses MPI by ctypes and ends MPI as mpi4py does. The argument says what its last rank does."""
import atexit
import ctypes
import os
import sys
import threading
import time

ctypes.CDLL("libmpich.so.12", ctypes.RTLD_GLOBAL)
mpi = ctypes.CDLL(None)  # in the order of the dynamic loader, as a linked program has it
WORLD = 0x44000000


class MeshError(Exception):
    pass


def load(what):
    if what == "raise":
        raise MeshError("cell 17\nhas a negative volume")
    if what == "spin":
        while True:
            what += "."
            what = what[:1]
    if what == "fault":
        ctypes.string_at(4)
    if what == "abort":
        threading.Thread(target=os.abort).start()
        time.sleep(60)
    if what == "exit":
        ctypes.CDLL(None).exit(3)
    if what == "exit at once":
        os._exit(4)
    if what == "sys.exit":
        sys.exit("no input")
    if what == "SystemExit":
        raise SystemExit(5)
    if what == "exit that is caught":
        try:
            sys.exit(6)
        except SystemExit:
            pass
    if what == "printed":
        ctypes.pythonapi.PyRun_SimpleString(b"import no_such_module")
    if what == "caught":
        try:
            raise MeshError("not the end")
        except MeshError:
            pass


def main(what):
    mpi.MPI_Init(None, None)
    atexit.register(mpi.MPI_Finalize)
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(WORLD, ctypes.byref(rank))
    mpi.MPI_Comm_size(WORLD, ctypes.byref(size))
    for _ in range(20):
        mpi.MPI_Barrier(WORLD)
    if rank.value == size.value - 1 or what == "all":
        load("raise" if what == "all" else what)
    mpi.MPI_Barrier(WORLD)
    if what == "sys.exit at the end":
        sys.exit(0)


main(sys.argv[1])
