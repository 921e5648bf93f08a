#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the test bed: MPI sees the nodes, any placement works, bytes are counted, rates are kept, and nothing is left behind.

Usage: testbed_test.py PROBE
"""
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from bed import Bed, reason_against, tool

PROBE = os.path.abspath(sys.argv[1])
SKIPPED = 77


def output_of(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120).stdout


def leftovers(name):
    """The remaining objects of the bed of this name."""
    found = [line.split()[0] for line in output_of("ip", "netns", "list").splitlines() if line.startswith(name + "-")]
    return found + [path for path in (f"/run/netns_testbed/{name}", f"/etc/netns/{name}-sw") if os.path.exists(path)]


def gone_at_last(name):
    for _ in range(600):
        if not leftovers(name):
            return True
        time.sleep(0.1)
    return False


def placement(bed, *options):
    """[(host, local rank, ranks of the node, rail)] by rank."""
    rows = [line.split() for line in bed.call("run.sh", *options, PROBE, "placement").splitlines()]
    rows.sort(key=lambda row: int(row[0]))
    return [(host, int(local), int(of), rail) for _, host, local, of, rail in rows]


class Placement(unittest.TestCase):
    def test_ranks_are_where_they_are_asked_to_be(self):
        with Bed(3, "none") as bed:
            self.assertEqual(bed.call("run.sh", "-H", 2, "-p", 2, PROBE, "ring"), "6\n")
            self.assertEqual(placement(bed, "-H", 2), [("h0", 0, 2, "data0"), ("h0", 1, 2, "data0"),
                                                      ("h1", 0, 2, "data0"), ("h1", 1, 2, "data0")])
            self.assertEqual([row[:3] for row in placement(bed, "-c", "-n", "2,1,1")],
                             [("h0", 0, 2), ("h1", 0, 1), ("h2", 0, 1), ("h0", 1, 2)])
            with tempfile.NamedTemporaryFile("w") as file:
                file.write("h2\n0\nh2\nh0\n0\n")
                file.flush()
                self.assertEqual([row[:3] for row in placement(bed, "-r", file.name)],
                                 [("h2", 0, 2), ("h0", 0, 3), ("h2", 1, 2), ("h0", 1, 3), ("h0", 2, 3)])

    def test_a_rail_for_each_local_rank(self):
        with Bed(2, "none", 2) as bed:
            self.assertEqual([row[3] for row in placement(bed, "-R")], ["data0", "data1"] * 2)
            self.assertEqual([row[3] for row in placement(bed)], ["data0,data1"] * 4)
            used = bed.counted("-R", "-p", 2, PROBE, "ring")[0]
            self.assertTrue(all(sent > 0 for sent, _ in used.values()), used)

    def test_complaints(self):
        with Bed(1, "none") as bed, self.assertRaisesRegex(RuntimeError, "on a host that is not up"):
            bed.call("run.sh", "-n", "1,1", PROBE, "ring")


class Bytes(unittest.TestCase):
    def test_bytes_are_counted_and_the_rate_is_kept(self):
        payload, mbit = 8 << 20, 200
        with Bed(2, f"{mbit}mbit") as bed:
            empty, _ = bed.counted("-p", 2, PROBE, "transfer", 0)
            full, text = bed.counted("-p", 2, PROBE, "transfer", payload)
            sent = full["h0", "data0"][0] - empty["h0", "data0"][0]
            received = full["h1", "data0"][1] - empty["h1", "data0"][1]
            back = full["h0", "data0"][1] - empty["h0", "data0"][1]
            self.assertAlmostEqual(sent / payload, 1, delta=0.02)
            self.assertAlmostEqual(received / payload, 1, delta=0.02)
            self.assertLess(back / payload, 0.02)
            # Even on a busy machine, a transfer cannot be faster than the link.
            self.assertGreater(float(text), 0.95 * payload * 8 / (mbit * 1e6))


class NothingStays(unittest.TestCase):
    def test_when_the_command_ends(self):
        with Bed(2, "10mbit") as bed:
            self.assertEqual(len(leftovers(bed.name)), 5)
        self.assertEqual(leftovers(bed.name), [])

    def test_when_it_is_interrupted(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
            with Bed(2, "10mbit") as bed:
                running = subprocess.Popen([tool("run.sh"), "sh", "-c", "echo up; exec sleep 1000"], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={**os.environ, "TB": bed.name})
                # Wait until the program runs: a process that is still entering the bed would not be ended with it.
                self.assertEqual(running.stdout.readline(), b"up\n")
                bed.holder.send_signal(number)
                self.assertTrue(gone_at_last(bed.name), (number, leftovers(bed.name)))
                running.wait(60)
                running.stdout.close()
                self.assertNotEqual(bed.holder.wait(60), 0)

    def test_beds_do_not_meet(self):
        with Bed(1, "10mbit") as one, Bed(1, "10mbit") as other:
            self.assertNotEqual(one.name, other.name)
            one.holder.terminate()
            self.assertTrue(gone_at_last(one.name))
            self.assertEqual(other.call("run.sh", "-p", 2, PROBE, "ring"), "1\n")


if __name__ == "__main__":
    reason = reason_against()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
