# SPDX-License-Identifier: Apache-2.0
"""What the calls of a skeleton are in C and in Python. The Fortran form is made from the C form (languages.py).

name: (parameters, C, Python, Python with objects instead of buffers or ""). Statements are separated by ";". AINT(), OFFSET(),
LIST() and INT() are conversions whose spelling depends on the language. Optional parameters are in DEFAULTS.
"""

DEFAULTS = {"comm": "world", "type": "double", "op": "sum", "root": "0"}
# The values of optional parameters: (C, Python).
NAMES = {
    "world": ("MPI_COMM_WORLD", "MPI.COMM_WORLD"), "self": ("MPI_COMM_SELF", "MPI.COMM_SELF"), "double": ("MPI_DOUBLE", "MPI.DOUBLE"),
    "float": ("MPI_FLOAT", "MPI.FLOAT"), "sum": ("MPI_SUM", "MPI.SUM"), "max": ("MPI_MAX", "MPI.MAX"), "row": ("row", "row"),
    "column": ("column", "column"), "inter": ("inter", "inter"),
}
_PUT = "{n}, {type}, {target}, AINT({shift}), {n}, {type}"

CALLS = {
    "send": ("to tag n", "MPI_Send(a, {n}, {type}, {to}, {tag}, {comm})", "{comm}.Send([a, {n}, {type}], {to}, {tag})",
             "{comm}.send(list(a[:{n}]), {to}, {tag})"),
    "recv": ("origin tag n", "MPI_Recv(b, {n}, {type}, {origin}, {tag}, {comm}, MPI_STATUS_IGNORE)",
             "{comm}.Recv([b, {n}, {type}], {origin}, {tag})", "received = {comm}.recv(None, {origin}, {tag})"),
    "recv_any": ("n", "MPI_Recv(b, {n}, {type}, MPI_ANY_SOURCE, MPI_ANY_TAG, {comm}, &status);source = status.MPI_SOURCE",
                 "{comm}.Recv([b, {n}, {type}], MPI.ANY_SOURCE, MPI.ANY_TAG, status);source = status.Get_source()", ""),
    "recv_order": ("n", "MPI_Recv(b, {n}, {type}, 0, MPI_ANY_TAG, {comm}, &status);got = status.MPI_TAG",
                   "{comm}.Recv([b, {n}, {type}], 0, MPI.ANY_TAG, status);got = status.Get_tag()", ""),
    "sendrecv": ("to tag origin origin_tag n",
                 "MPI_Sendrecv(a, {n}, {type}, {to}, {tag}, b, {n}, {type}, {origin}, {origin_tag}, {comm}, MPI_STATUS_IGNORE)",
                 "{comm}.Sendrecv([a, {n}, {type}], {to}, {tag}, [b, {n}, {type}], {origin}, {origin_tag})",
                 "received = {comm}.sendrecv(list(a[:{n}]), {to}, {tag}, None, {origin}, {origin_tag})"),
    "isend": ("k to tag n", "MPI_Isend(a, {n}, {type}, {to}, {tag}, {comm}, &req[{k}])", "req[{k}] = {comm}.Isend([a, {n}, {type}], {to}, {tag})", ""),
    "issend": ("k to tag n", "MPI_Issend(a, {n}, {type}, {to}, {tag}, {comm}, &req[{k}])", "req[{k}] = {comm}.Issend([a, {n}, {type}], {to}, {tag})", ""),
    "irecv": ("k origin tag n", "MPI_Irecv(c{k}, {n}, {type}, {origin}, {tag}, {comm}, &req[{k}])",
              "req[{k}] = {comm}.Irecv([c{k}, {n}, {type}], {origin}, {tag})", ""),
    "send_init": ("k to tag n", "MPI_Send_init(a, {n}, {type}, {to}, {tag}, {comm}, &req[{k}])", "req[{k}] = {comm}.Send_init([a, {n}, {type}], {to}, {tag})", ""),
    "recv_init": ("k origin tag n", "MPI_Recv_init(c{k}, {n}, {type}, {origin}, {tag}, {comm}, &req[{k}])",
                  "req[{k}] = {comm}.Recv_init([c{k}, {n}, {type}], {origin}, {tag})", ""),
    "start": ("k", "MPI_Start(&req[{k}])", "req[{k}].Start()", ""),
    "waitall": ("n", "MPI_Waitall({n}, req, MPI_STATUSES_IGNORE)", "MPI.Request.Waitall(req[:{n}])", ""),
    "test": ("k", "MPI_Test(&req[{k}], &flag, MPI_STATUS_IGNORE)", "flag = int(req[{k}].Test())", ""),
    "iprobe": ("tag", "MPI_Iprobe(MPI_ANY_SOURCE, {tag}, {comm}, &flag, &status);source = status.MPI_SOURCE",
               "flag = int({comm}.Iprobe(MPI.ANY_SOURCE, {tag}, status));source = status.Get_source()", ""),
    "barrier": ("", "MPI_Barrier({comm})", "{comm}.Barrier()", "{comm}.barrier()"),
    "ibarrier": ("k", "MPI_Ibarrier({comm}, &req[{k}])", "req[{k}] = {comm}.Ibarrier()", ""),
    "bcast": ("n", "MPI_Bcast(a, {n}, {type}, {root}, {comm})", "{comm}.Bcast([a, {n}, {type}], {root})", "received = {comm}.bcast(step, {root})"),
    "reduce": ("n", "MPI_Reduce(a, b, {n}, {type}, {op}, {root}, {comm})", "{comm}.Reduce([a, {n}, {type}], [b, {n}, {type}], {op}, {root})",
               "received = {comm}.reduce(step, {op}, {root})"),
    "allreduce": ("n", "MPI_Allreduce(a, b, {n}, {type}, {op}, {comm})", "{comm}.Allreduce([a, {n}, {type}], [b, {n}, {type}], {op})",
                  "received = {comm}.allreduce(step, {op})"),
    "iallreduce": ("k n", "MPI_Iallreduce(a, b, {n}, {type}, {op}, {comm}, &req[{k}])",
                   "req[{k}] = {comm}.Iallreduce([a, {n}, {type}], [b, {n}, {type}], {op})", ""),
    "gather": ("n", "MPI_Gather(a, {n}, {type}, wide, {n}, {type}, {root}, {comm})", "{comm}.Gather([a, {n}, {type}], [wide, {n}, {type}], {root})",
               "received = {comm}.gather(step, {root})"),
    "allgather": ("n", "MPI_Allgather(a, {n}, {type}, wide, {n}, {type}, {comm})", "{comm}.Allgather([a, {n}, {type}], [wide, {n}, {type}])",
                  "received = {comm}.allgather(step)"),
    "alltoall": ("n", "MPI_Alltoall(outgoing, {n}, {type}, wide, {n}, {type}, {comm})", "{comm}.Alltoall([outgoing, {n}, {type}], [wide, {n}, {type}])", ""),
    "comm_split": ("comm colour", "MPI_Comm_split(MPI_COMM_WORLD, {colour}, rank, &{comm})", "{comm} = MPI.COMM_WORLD.Split({colour}, rank)", ""),
    "intercomm_create": ("leader", "MPI_Intercomm_create(row, 0, MPI_COMM_WORLD, {leader}, 5, &inter)",
                         "inter = row.Create_intercomm(0, MPI.COMM_WORLD, {leader}, 5)", ""),
    "win_create": ("", "MPI_Win_create(wide, AINT(8 * wide_size), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win)",
                   "win = MPI.Win.Create(wide, 8, MPI.INFO_NULL, MPI.COMM_WORLD)", ""),
    "win_free": ("", "MPI_Win_free(&win)", "win.Free()", ""),
    "fence": ("", "MPI_Win_fence(0, win)", "win.Fence(0)", ""),
    "lock": ("target", "MPI_Win_lock(MPI_LOCK_EXCLUSIVE, {target}, 0, win)", "win.Lock({target}, MPI.LOCK_EXCLUSIVE)", ""),
    "unlock": ("target", "MPI_Win_unlock({target}, win)", "win.Unlock({target})", ""),
    "accumulate": ("target shift n", "MPI_Accumulate(a, " + _PUT + ", {op}, win)", "win.Accumulate([a, {n}, {type}], {target}, [{shift}, {n}, {type}], {op})", ""),
    "fetch": ("target", "MPI_Fetch_and_op(a, b, {type}, {target}, AINT(0), {op}, win)", "win.Fetch_and_op([a, 1, {type}], [b, 1, {type}], {target}, 0, {op})", ""),
    "make_groups": ("", "MPI_Comm_group(MPI_COMM_WORLD, &everyone);MPI_Group_incl(everyone, 1, LIST(left), &sources);"
                    "MPI_Group_incl(everyone, 1, LIST(right), &targets)",
                    "everyone = MPI.COMM_WORLD.Get_group();sources = everyone.Incl([left]);targets = everyone.Incl([right])", ""),
    "post": ("peer", "MPI_Win_post(sources, 0, win)", "win.Post(sources)", ""),
    "start_epoch": ("peer", "MPI_Win_start(targets, 0, win)", "win.Start(targets)", ""),
    "complete": ("", "MPI_Win_complete(win)", "win.Complete()", ""),
    "wait_epoch": ("", "MPI_Win_wait(win)", "win.Wait()", ""),
    "file_open": ("", 'MPI_File_open(MPI_COMM_WORLD, "fields.dat", MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, &file)',
                  'file = MPI.File.Open(MPI.COMM_WORLD, "fields.dat", MPI.MODE_CREATE + MPI.MODE_RDWR)', ""),
    "write_at_all": ("block n", "MPI_File_write_at_all(file, OFFSET(8 * {n} * {block}), a, {n}, {type}, MPI_STATUS_IGNORE)",
                     "file.Write_at_all(8 * {n} * {block}, [a, {n}, {type}])", ""),
    "file_close": ("", "MPI_File_close(&file)", "file.Close()", ""),
    "append": ("", "APPEND()", "APPEND()", ""),
}
COLLECTIVE = {"barrier", "bcast", "reduce", "allreduce", "gather", "allgather", "alltoall", "fence", "write_at_all", "ibarrier", "iallreduce"}
