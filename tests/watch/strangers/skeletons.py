# SPDX-License-Identifier: Apache-2.0
"""Communication patterns of programs, written in a small subset of Python that languages.py translates.

All variables are global integers. `hook()` stands for the work of the rank, where faults outside MPI are put; `step` counts it.
A rank waits for every other one again and again, so that the fault of each rank holds up others.
"""

SKELETONS = {
    "ring": """
def shift():
    if rank % 2 == 0:
        send(right, 10 + step, n)
        recv(left, 10 + step, n)
    else:
        recv(left, 10 + step, n)
        send(right, 10 + step, n)

def main():
    for step in range(steps):
        hook()
        shift()
    barrier()
""",
    "halo_1d": """
def exchange_halo():
    if rank > 0:
        irecv(0, rank - 1, 100 + step, n)
        isend(1, rank - 1, 200 + step, n)
    if rank < size - 1:
        irecv(2, rank + 1, 200 + step, n)
        isend(3, rank + 1, 100 + step, n)
    waitall(4)

def main():
    for step in range(steps):
        exchange_halo()
        hook()
        if step % 8 == 7:
            allreduce(1)
""",
    "halo_2d": """
def exchange_rows():
    sendrecv((rank + columns) % size, 20 + step, (rank + size - columns) % size, 20 + step, n)

def exchange_columns():
    sendrecv(rank // columns * columns + (rank + 1) % columns, 60 + step, rank // columns * columns + (rank + columns - 1) % columns, 60 + step, n)

def main():
    columns = 2 - size % 2
    for step in range(steps):
        exchange_rows()
        hook()
        exchange_columns()
    reduce(1)
""",
    "pipeline": """
def stage():
    if rank > 0:
        recv(rank - 1, 10 + step, n)
    hook()
    if rank < size - 1:
        send(rank + 1, 10 + step, n)

def main():
    for step in range(steps):
        stage()
    barrier()
""",
    "solver": """
def smooth():
    if rank > 0:
        sendrecv(rank - 1, 10 + step, rank - 1, 10 + step, n)
    if rank < size - 1:
        sendrecv(rank + 1, 10 + step, rank + 1, 10 + step, n)

def residual():
    allreduce(1)

def main():
    for step in range(steps):
        bcast(4)
        smooth()
        hook()
        residual()
        allreduce(2)
    barrier()
""",
    "transpose": """
def turn_matrix():
    alltoall(n)

def main():
    for step in range(steps):
        turn_matrix()
        hook()
        turn_matrix()
        if step % 4 == 3:
            reduce(2)
    barrier()
""",
    "histogram_fence": """
def count_values():
    fence()
    accumulate((rank + step) % size, 0, n)
    fence()

def main():
    win_create()
    for step in range(steps):
        hook()
        count_values()
    win_free()
""",
    "histogram_lock": """
def count_values():
    target = (rank + step) % size
    lock(target)
    accumulate(target, 0, n)
    unlock(target)

def main():
    win_create()
    for step in range(steps):
        hook()
        count_values()
        if step % 4 == 3:
            barrier()
    win_free()
""",
    "sparse_exchange": """
def exchange_sparse():
    issend(0, (rank + 1 + step % (size - 1)) % size, 10 + step, n)
    entered = 0
    done = 0
    while done == 0:
        iprobe(10 + step)
        if flag == 1:
            recv(source, 10 + step, n)
        if entered == 0:
            test(0)
            if flag == 1:
                ibarrier(1)
                entered = 1
        else:
            test(1)
            if flag == 1:
                done = 1

def main():
    for step in range(steps):
        hook()
        exchange_sparse()
    barrier()
""",
    "overlap": """
def finish_sum():
    waitall(1)

def main():
    for step in range(steps):
        iallreduce(0, n)
        hook()
        finish_sum()
        if step % 4 == 3:
            gather(2)
""",
    "rows_and_columns": """
def multiply_panel():
    bcast(n, comm=row)
    hook()
    reduce(n, comm=column)

def main():
    columns = 2 - size % 2
    comm_split(row, rank // columns)
    comm_split(column, rank % columns)
    for step in range(steps):
        multiply_panel()
        allreduce(1)
    barrier()
""",
    "file_output": """
def write_fields():
    write_at_all(rank, n)

def main():
    file_open()
    for step in range(steps):
        hook()
        write_fields()
    file_close()
""",
    "checkpoint": """
def save_fields():
    gather(n)
    if rank == 0:
        append()
    barrier()

def main():
    for step in range(steps):
        hook()
        allreduce(2)
        if step % 2 == 1:
            save_fields()
""",
    "shared_counter": """
def next_ticket():
    lock(0)
    fetch(0)
    unlock(0)

def main():
    win_create()
    for step in range(steps):
        next_ticket()
        hook()
        allgather(1)
    win_free()
""",
    "tree": """
def reduce_tree():
    width = 1
    while width < size:
        if rank % (2 * width) == 0:
            if rank + width < size:
                recv(rank + width, 10 + step, n)
            width = 2 * width
        else:
            send(rank - width, 10 + step, n)
            width = size + 1

def main():
    for step in range(steps):
        hook()
        reduce_tree()
        bcast(2)
    barrier()
""",
    "persistent": """
def sweep():
    start(0)
    start(1)
    start(2)
    start(3)
    waitall(4)

def main():
    recv_init(0, left, 11, n)
    recv_init(1, right, 12, n)
    send_init(2, right, 11, n)
    send_init(3, left, 12, n)
    for step in range(steps):
        sweep()
        hook()
        if step % 8 == 7:
            allreduce(1)
""",
    "ensemble": """
def couple():
    sendrecv(rank % half, 10 + step, rank % half, 10 + step, n, comm=inter)

def main():
    half = size // 2
    comm_split(row, rank // half)
    intercomm_create(half - rank // half * half)
    for step in range(steps):
        allreduce(1, comm=row)
        hook()
        couple()
        if step % 8 == 7:
            allreduce(1, comm=inter)
    barrier()
""",
    "active_target": """
def push():
    post(left)
    start_epoch(right)
    accumulate(right, 0, n)
    complete()
    wait_epoch()

def main():
    win_create()
    make_groups()
    for step in range(steps):
        hook()
        push()
    win_free()
""",
    "master_worker": """
def serve():
    sent = 0
    done = 0
    for i in range(1, size):
        send(i, 1, n)
        sent = sent + 1
    while done < jobs:
        recv_any(n)
        done = done + 1
        if sent < jobs:
            send(source, 1, n)
            sent = sent + 1
        else:
            send(source, 2, n)

def work():
    step = 0
    recv_order(n)
    while got == 1:
        hook()
        send(0, 3, n)
        step = step + 1
        recv_order(n)

def main():
    jobs = 12 * (size - 1)
    if rank == 0:
        serve()
    else:
        work()
    barrier()
""",
    "static_master": """
def hand_out():
    for i in range(1, size):
        send(i, 10 + step, n)
    for i in range(1, size):
        recv(i, 50 + step, n)

def calculate():
    recv(0, 10 + step, n)
    hook()
    send(0, 50 + step, n)

def main():
    for step in range(steps):
        if rank == 0:
            hand_out()
        else:
            calculate()
    barrier()
""",
    "send_cycle": """
def shift():
    send(right, 10 + step, n)
    recv(left, 10 + step, n)

def main():
    for step in range(steps):
        hook()
        shift()
    barrier()
""",
}

# Skeletons that need an even number of ranks, at least four (groups of two), or three.
EVEN = {"ensemble", "rows_and_columns", "halo_2d"}
# Here rank 0 never executes hook().
WORKERS_ONLY = {"master_worker", "static_master"}
