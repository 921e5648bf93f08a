# SPDX-License-Identifier: Apache-2.0
"""Reports of MPI time of a job that never ran, for tests of the command and of the page."""
import json
import os
import random

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cli", "mpi_report", "page.html")
HOSTILE = "</script><img src=x onerror=\"console.error('escaped')\">&amp;'\""


def sample_report(ranks=4, scale=1.0, **changes):
    """A halo exchange on a ring of ranks; rank 1 computes longest. `scale`: of the time in MPI_Allreduce."""
    rows = [{"rank": i, "host": f"node{i // 64}", "pid": 1000 + i, "seconds": 12.5, "mpi_seconds": (1 if i == 1 else 3 + i % 7 * 0.2) * scale,
             "calls": 3000, "timed": 2900, "bytes": 3 << 20, "polls": 0, "sampling": 1, "incomplete": False} for i in range(ranks)]
    total = sum(row["mpi_seconds"] for row in rows)
    sums = {"calls": 1000 * ranks, "timed": 1000 * ranks, "bytes": ranks << 20}

    def site(function, place, part):
        seconds = total * part
        return {**sums, "function": function, "place": place, "seconds": seconds, "most_seconds": 0.05, "ranks": ranks, "least_rank": min(1, ranks - 1),
                "most_rank": ranks - 1, "least_total": seconds / ranks / 2, "most_total": 2 * seconds / ranks, "variation": 0.25, "histogram": [0] * 12,
                "served": {0.6: ["one node"], 0.3: ["pack", "MPI"]}.get(part, []), "saved_seconds": {0.3: 1.5}.get(part, 0)}
    sites = [site("MPI_Allreduce", "solve (solver.f90:88)", 0.6), site("MPI_Sendrecv", "exchange_halo (halo.f90:212)", 0.3),
             site("MPI_Bcast", "read_mesh (mesh.f90:17)", 0.1)]
    report = {"format": "bestride-mpi-report", "version": 1, "bestride": "0.1.0", "job": "sample", "executable": "/opt/solver", "abi": "mpich",
              "started": 1.7e9, "launcher_exit_code": 0, "size": ranks, "seconds": 12.5,
              "total": {"function": "", "calls": 3000 * ranks, "timed": 3000 * ranks, "bytes": 3 * ranks << 20, "seconds": total},
              "collective_wait": {"calls": 300, "seconds": 5.0, "waited": 4.0}, "ranks": rows, "sites": sites,
              "functions": [{**sums, "function": s["function"], "seconds": s["seconds"]} for s in sites],
              "pairs": [[i, (i + d) % ranks, 1000, 8000 * (1 + 15 * (d == 1))] for i in range(ranks) for d in (1, ranks - 1) if ranks > 1 and
                        (d == 1 or ranks > 2)],
              "communicators": [{"name": "MPI_COMM_WORLD", "kind": "communicator", "size": ranks, "members_seen": ranks, "collectives": 2000}],
              "findings": [], "notes": []}
    return {**report, **changes}


def sample_page(report, calls=30):
    """The page of a report with a made-up timeline, as cli/mpi_report/page.cpp fills it in."""
    chance = random.Random(1)
    rows = []
    for rank in report["ranks"]:
        row = []
        for i in range(calls):
            row.append([0, i * 1000 + 100 + chance.randrange(100), 150])
            enter = i * 1000 + (900 if rank["rank"] == 1 else 400 + chance.randrange(200))
            row.append([1, enter, i * 1000 + 950 - enter])
        rows.append({"rank": rank["rank"], "calls": row})
    data = {"report": report, "timeline": {"functions": ["MPI_Sendrecv", "MPI_Allreduce"], "kinds": ["send", "collective"], "ranks": rows},
            "stacks": ["ranks 0-3  main > solve (solver.f90:88)", f"  rank 1  {HOSTILE}"] if report["findings"] else []}
    with open(PAGE, encoding="utf-8") as file:
        return file.read().replace("@DATA@", json.dumps(data).replace("<", "\\u003c"))
