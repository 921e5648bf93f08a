# SPDX-License-Identifier: Apache-2.0
"""Ways to spend `t` seconds (slow_*) and ways to wait for a rank that does (meet_*) of the generated Python programs.

Each meet_* returns `token`, which the owner has.
"""
import asyncio
import gc
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings

from mpi4py import MPI

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.Get_rank(), WORLD.Get_size()
last_tags = [0]


def check(holds, what):
    if not holds:
        print(f"rank {RANK}: wrong: {what}", flush=True)
        WORLD.Abort(90)


def next_tag():
    last_tags[0] += 1
    return last_tags[0]


def slow_nap(t):
    time.sleep(t)


def slow_work(t):
    end = time.monotonic() + t
    while time.monotonic() < end:
        sum(range(2000))


def slow_mixed(t):
    end = time.monotonic() + t
    while time.monotonic() < end:
        slow_work(0.05)
        time.sleep(0.05)


def slow_garbage(t):
    end = time.monotonic() + t
    while time.monotonic() < end:
        nodes = [[] for _ in range(1000)]
        for i, node in enumerate(nodes):
            node.append(nodes[i - 1])
        gc.collect()


def slow_checkpoint(t):
    end = time.monotonic() + t
    with tempfile.TemporaryFile() as file:
        while time.monotonic() < end:
            file.seek(0)
            pickle.dump(list(range(20000)), file)
            os.fsync(file.fileno())


def slow_subprocess(t):
    result = subprocess.run(["sh", "-c", f"sleep {t}; kill -SEGV $$"], check=False)
    check(result.returncode == -signal.SIGSEGV, "a process that crashes")


def slow_interpreter(t):
    result = subprocess.run([sys.executable, "-c", f"import time; time.sleep({t}); raise SystemExit(7)"], check=False)
    check(result.returncode == 7, "an interpreter that exits with 7")


def slow_system(t):
    check(os.waitstatus_to_exitcode(os.system(f"sleep {t}; exit 2")) == 2, "os.system")


def slow_process(t):
    process = multiprocessing.get_context("fork").Process(target=slow_work, args=(t,))
    process.start()
    process.join()
    check(process.exitcode == 0, "process")


def fail(t):
    time.sleep(t)
    sys.stderr = open(os.devnull, "w", encoding="utf-8")  # pylint: disable=consider-using-with
    raise RuntimeError("expected")


def slow_failing_process(t):
    process = multiprocessing.get_context("fork").Process(target=fail, args=(t,))
    process.start()
    process.join()
    check(process.exitcode == 1, "a process that fails")


def slow_pool(t):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(time.sleep, [t / 2, t / 2, t / 2])


def slow_thread(t):
    thread = threading.Thread(target=slow_work, args=(t,))
    thread.start()
    thread.join()


def slow_event(t):
    event = threading.Event()
    timer = threading.Timer(t, event.set)
    timer.start()
    event.wait()
    timer.join()


def slow_asyncio(t):
    asyncio.run(asyncio.sleep(t))


def slow_select(t):
    select.select([], [], [], t)


def slow_alarm(t):
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, t)
    signal.pause()
    signal.signal(signal.SIGALRM, before)


def slow_pipe(t):
    with subprocess.Popen(["sh", "-c", f"sleep {t}; echo ready"], stdout=subprocess.PIPE, text=True) as process:
        check(process.stdout.read() == "ready\n", "pipe")


def slow_warnings(t):
    end = time.monotonic() + t
    while time.monotonic() < end:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            warnings.warn("expected")
        try:
            {}["no such key"]  # pylint: disable=expression-not-assigned
        except KeyError:
            pass
        time.sleep(0.001)


def square_slowly(i, t):
    time.sleep(t)
    return i * i


def meet_barrier(_owner, token):
    WORLD.Barrier()
    return token


def meet_bcast(owner, token):
    return WORLD.bcast({"token": token} if RANK == owner else None, owner)["token"]


def meet_large_bcast(owner, token):
    return len(WORLD.bcast(b"x" * 3000000 if RANK == owner else None, owner)) - 3000000 + token


def meet_allreduce(owner, token):
    return WORLD.allreduce(token if RANK == owner else 0)


def meet_gather(owner, token):
    values = WORLD.gather([RANK] * 1000, owner)
    check(values is None or sum(map(len, values)) == 1000 * SIZE, "gather")
    return token


def meet_allgather(owner, token):
    return WORLD.allgather(token)[owner]


def meet_scatter(owner, token):
    return WORLD.scatter([token] * SIZE if RANK == owner else None, owner)


def meet_receive(owner, token):
    tag = next_tag()
    if RANK != owner:
        return WORLD.recv(source=owner if token % 2 else MPI.ANY_SOURCE, tag=tag)
    for to in range(SIZE):
        if to != owner:
            WORLD.send(token, to, tag)
    return token


def meet_large_send(owner, token):
    tag = next_tag()
    if RANK != owner:
        WORLD.send(list(range(200000)), owner, tag)
    else:
        for _ in range(SIZE - 1):
            check(len(WORLD.recv(source=MPI.ANY_SOURCE, tag=tag)) == 200000, "a large object")
    return token


def meet_ssend(owner, token):
    tag = next_tag()
    if RANK != owner:
        WORLD.ssend(token, owner, tag)
    else:
        for source in range(SIZE):
            check(source == owner or WORLD.recv(source=source, tag=tag) == token, "ssend")
    return token


def meet_iprobe(owner, token):
    tag = next_tag()
    requests = [WORLD.isend(token, to, tag) for to in range(SIZE) if RANK == owner]
    while not WORLD.iprobe(source=owner, tag=tag):
        time.sleep(0.002)
    token = WORLD.recv(source=owner, tag=tag)
    MPI.Request.waitall(requests)
    return token


def meet_test(owner, token):
    request = WORLD.Ibarrier()
    while not request.Test():
        time.sleep(0.001 * (owner % 2))
    return token


def meet_asyncio(owner, token):
    async def test(request):
        while not request.Test():
            await asyncio.sleep(0.005)

    async def both():
        await asyncio.gather(test(WORLD.Ibarrier()), asyncio.sleep(0.01))

    asyncio.run(both())
    return token + 0 * owner


def meet_split(owner, token):
    part = WORLD.Split(RANK == owner, -RANK)
    part.Barrier()
    part.Free()
    return token


def meet_thread(owner, token):
    result = []
    thread = threading.Thread(target=lambda: result.append(meet_receive(owner, token)))
    thread.start()
    thread.join()
    return result[0]
