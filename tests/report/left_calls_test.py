#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Why calls of left_calls.cpp were left to the MPI library, and their bytes, in the JSON of BESTRIDE_REPORT. Numbers are of both ranks."""
import json
import os
import subprocess
import tempfile
import unittest

KIB = 1024
EACH = 20  # ten calls on each of two ranks


def start(**environment):
    environment = {"BESTRIDE_REPORT": "1", **environment}
    settings = [word for name, value in environment.items() for word in ("-genv", name, value)]
    return subprocess.run([os.environ["MPIEXEC"], "-n", "2", "-genv", "LD_PRELOAD", os.environ["LIBRARY"], *settings, os.environ["PROGRAM"]],
                          text=True, capture_output=True, timeout=60, check=True)


def run(**environment):
    """Returns {call: {reason, or strategy if it was not left: (calls, bytes)}} and the text of the report."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        done = start(BESTRIDE_REPORT_FILE=path, **environment)
        with open(path, encoding="utf-8") as file:
            lines = json.load(file)["lines"]
    calls = {}
    for line in lines:
        by_reason = calls.setdefault(line["call"], {})
        key = line["reason"] or line["strategy"]
        before = by_reason.get(key, (0, 0))
        by_reason[key] = (before[0] + line["calls"], before[1] + line["bytes"])
    return calls, done.stderr


EARLY_OR_SHARED = "new communicator or one node"


def without_first_use(calls):
    """How much a communicator has been used decides from which call on it has shared memory."""
    return {call: {key: value for key, value in [*by_reason.items(), (EARLY_OR_SHARED, added(by_reason))]
                   if key not in ("new communicator", "one node") and value[0]} for call, by_reason in calls.items()}


def added(by_reason):
    pairs = [by_reason.get(key, (0, 0)) for key in ("new communicator", "one node")]
    return tuple(map(sum, zip(*pairs)))


class LeftCallsTest(unittest.TestCase):
    maxDiff = None

    def test_on_one_node(self):
        calls, text = run()
        # Used so much before that new memory pays.
        self.assertEqual(calls["MPI_Alltoallw"].keys(), {"one node"})
        self.assertTrue(all(calls["MPI_Allreduce"].get(key, (0,))[0] for key in ("new communicator", "one node")))
        self.assertEqual(without_first_use(calls), {
            "MPI_Bcast": {EARLY_OR_SHARED: (EACH, EACH * 8), "nothing to move": (EACH, EACH * 8)},
            "MPI_Gather": {EARLY_OR_SHARED: (EACH, EACH * 32)},
            "MPI_Scatter": {EARLY_OR_SHARED: (EACH, EACH * 32)},
            "MPI_Allgather": {EARLY_OR_SHARED: (EACH, EACH * 32)},
            "MPI_Alltoall": {"collective size": (EACH, EACH * 512 * KIB), "nothing to move": (EACH, 0)},
            "MPI_Alltoallv": {"unsupported": (EACH, EACH * 512 * KIB)},
            "MPI_Ialltoallw": {"unsupported": (EACH, EACH * 512 * KIB)},
            "MPI_Alltoallw": {EARLY_OR_SHARED: (EACH, EACH * 512 * KIB)},
            "MPI_Ialltoall": {"collective size": (EACH, EACH * 512 * KIB)},
            # The root knows the blocks of all ranks, the other one its own.
            "MPI_Igatherv": {"unsupported": (EACH, 10 * 256 * KIB + 10 * 512 * KIB)},
            "MPI_Allreduce": {"order": (2 * EACH, EACH * 8 + EACH * 64 * KIB),
                              EARLY_OR_SHARED: (2 * EACH + 6, 4 * 48 * KIB + (EACH - 4) * 32 * KIB + 2 * 16 * KIB + EACH * 8)},
            # The progress thread, which carries it out on one node, may not call MPI.
            "MPI_Iallreduce": {"unsupported": (EACH, EACH * 64 * KIB)},
            "MPI_Reduce": {"unsupported": (EACH, EACH * 64 * KIB), "order": (EACH, EACH * 8), EARLY_OR_SHARED: (4, 4 * 8)},
            "MPI_Reduce_scatter": {"order": (EACH, EACH * 64 * KIB)},
            "MPI_Reduce_scatter_block": {"order": (EACH, EACH * 64 * KIB)},
            "MPI_Scan": {"unsupported": (EACH, EACH * 64 * KIB)},
            "MPI_Exscan": {"unsupported": (EACH, EACH * 64 * KIB)},
            # To the left and to the right neighbor, which is the same rank.
            "MPI_Neighbor_allgather": {EARLY_OR_SHARED: (EACH, EACH * 16 * KIB)},
            "MPI_Sendrecv": {"predefined": (EACH, EACH * 800)},
        })
        self.assertIn("next: order: BESTRIDE_REASSOCIATE=1 permits any order", text)
        self.assertNotIn("not all ranks", text)

    def test_with_another_order(self):
        calls, _ = run(BESTRIDE_REASSOCIATE="1")
        for call in ("MPI_Allreduce", "MPI_Reduce_scatter", "MPI_Reduce_scatter_block"):
            self.assertNotIn("order", calls[call])
            self.assertIn("one node", calls[call])
        self.assertEqual(list(calls["MPI_Iallreduce"]), ["unsupported"])

    def test_without_collectives(self):
        for environment, reason in (({"BESTRIDE_ALL_RANKS": "0"}, "not all ranks"), ({"BESTRIDE_COLLECTIVES": "library"}, "collectives off")):
            calls, text = run(**environment)
            del calls["MPI_Sendrecv"]
            for call, reasons in calls.items():
                reasons.pop("nothing to move", None)
                self.assertEqual(list(reasons), ["unsupported" if call in ("MPI_Scan", "MPI_Exscan") else reason], call)
            self.assertEqual("next: not all ranks: start the job with 'bestride run'" in text, reason == "not all ranks")

    def test_without_shared_memory(self):
        calls, _ = run(BESTRIDE_FORCE="fail=window")
        self.assertEqual(calls["MPI_Allreduce"].keys(), {"order", "new communicator", "memory"})
        # A communicator that has been used so much that new memory would pay.
        self.assertEqual(calls["MPI_Alltoallw"].keys(), {"memory"})
        calls, _ = run(BESTRIDE_FORCE="fail=offers")
        self.assertEqual(calls["MPI_Allreduce"], {"memory": (4 * EACH + 6, EACH * (2 * 8 + 64 * KIB + 32 * KIB) + 6 * 16 * KIB)})
        self.assertEqual(calls["MPI_Neighbor_allgather"].keys(), {"memory"})

    def test_a_file_that_cant_be_written_is_known_at_the_start(self):
        lines = start(BESTRIDE_REPORT_FILE="/nowhere/report.json").stderr.splitlines()
        self.assertEqual(lines[0], "bestride: the report can't be written to /nowhere/report.json (No such file or directory); set BESTRIDE_REPORT_FILE")
        self.assertIn("left to MPI, because", "\n".join(lines[1:]))
        self.assertNotIn("can't be written", "\n".join(lines[1:]))

    def test_between_nodes(self):
        with tempfile.NamedTemporaryFile("w", suffix=".topology") as file:
            file.write("node 0\nnode 1\n")
            file.flush()
            predicted, _ = run(BESTRIDE_TOPOLOGY=file.name)
            forced, _ = run(BESTRIDE_TOPOLOGY=file.name, BESTRIDE_COLLECTIVES="hierarchical")
        self.assertEqual(list(predicted["MPI_Allgather"]), ["model"])
        self.assertEqual(list(forced["MPI_Allgather"]), ["hierarchical"])
        self.assertEqual(list(forced["MPI_Reduce_scatter"]), ["order"])
        for calls in (predicted, forced):
            self.assertEqual(list(calls["MPI_Igatherv"]), ["unsupported"])
            self.assertEqual(list(calls["MPI_Neighbor_allgather"]), ["unsupported"])


if __name__ == "__main__":
    unittest.main()
