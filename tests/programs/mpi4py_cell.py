# SPDX-License-Identifier: Apache-2.0
"""One cell of mpi4py_matrix.py: mpi4py with one MPI library. Prints what has to be equal without and with the preload library. Lines that begin
with "#" name the library in which a call arrives."""
import array
import ctypes
import hashlib
import os
import sys
import time

from mpi4py import MPI


def owner(function):
    """The name of the object that a call of the function goes to, by the preload library's own account."""
    try:
        slot_target = ctypes.CDLL(None).bestride_slot_target
    except AttributeError:
        return "no preload library"
    slot_target.restype = ctypes.c_void_p
    address = slot_target(function)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            words = line.split()
            begin, end = (int(bound, 16) for bound in words[0].split("-"))
            if address and begin <= address < end:
                return words[-1].rsplit("/", 1)[-1]
    return "nobody"


def vector():
    kind = MPI.DOUBLE.Create_vector(500, 3, 7)
    kind.Commit()
    return kind


def leave_a_message():
    """Nobody receives it. MPICH from 4.3 on ends the program in MPI_Finalize if it has seen the message by then, which no call here lets it do."""
    if MPI.COMM_WORLD.Get_rank() == 1:
        MPI.COMM_WORLD.Send([array.array("d", [1.0] * 8), MPI.DOUBLE], 0, 3)
    time.sleep(0.2)
    MPI.Finalize()  # raises an exception of what mpi4py ignores at exit


def main():
    if sys.argv[1:] == ["unreceived"]:
        leave_a_message()
        return
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    lines = [f"{MPI.Get_library_version().splitlines()[0]} {size} {rank}"]
    sent = array.array("d", [rank + 0.25 * i for i in range(4000)])
    received = array.array("d", [-1.0] * 4000)
    kind = vector()
    comm.Sendrecv([sent, 1, kind], rank, 1, [received, 1, kind], rank, 1)
    lines.append(hashlib.sha256(received).hexdigest())
    if size == 2:
        received = array.array("d", [-2.0] * 4000)
        requests = [comm.Irecv([received, 1, kind], 1 - rank, 2), comm.Isend([sent, 1, kind], 1 - rank, 2)]
        MPI.Request.Waitall(requests)
        lines.append(hashlib.sha256(received).hexdigest())
        comm.Allreduce([sent, MPI.DOUBLE], [received, MPI.DOUBLE], MPI.SUM)
        lines.append(hashlib.sha256(received).hexdigest())
    kind.Free()
    lines.append(f"# {owner(b'MPI_Sendrecv')} {owner(b'MPI_Type_commit')}")
    os.write(1, ("\n".join(lines) + "\n").encode())  # at once, so that the lines of two ranks do not mix


main()
