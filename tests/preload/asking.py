# SPDX-License-Identifier: Apache-2.0
"""asking.py [FAKE_MPI...]: asks with ctypes which MPI functions exist, before and after loading each library, as mpi4py does."""
import ctypes
import sys

NAMES = ("MPI_Get_version", "MPI_Abi_get_version", "MPI_Type_commit", "PMPI_Comm_size", "MPI_Comm_spawn")


def ask(when, library):
    for name in NAMES:
        try:
            getattr(library, name)
            print(f"{when}: {name} is there")
        except AttributeError as error:
            print(f"{when}: {error}")


ask("start", ctypes.CDLL(None))
for path in sys.argv[1:]:
    mode = ctypes.RTLD_GLOBAL if path.startswith("global:") else ctypes.RTLD_LOCAL
    ask("library", ctypes.CDLL(path.split(":")[-1], mode))
    ask("process", ctypes.CDLL(None))
