#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs halo3d as a user does: exit codes, error messages, JSON, and whether its check finds wrong values.

Usage: cli_test.py MPIEXEC HALO3D FOLDER_OF_A_STAND_IN_CUDA_DRIVER
"""
import json
import os
import subprocess
import sys
import unittest

MPIEXEC, HALO3D, STAND_IN = sys.argv[1:4]
SMALL = ["--nx", "6", "--ny", "5", "--nz", "4", "--iterations", "3", "--warmup", "1"]


def run(*arguments, ranks=1, **environment):
    return subprocess.run([MPIEXEC, "-n", str(ranks), HALO3D, *arguments], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, env={**os.environ, **environment})


class Complaints(unittest.TestCase):
    def complains(self, line, *arguments, ranks=1, **environment):
        done = run(*arguments, ranks=ranks, **environment)
        self.assertEqual(done.returncode, 2, done)
        self.assertEqual(done.stderr, f"halo3d: {line}\n")
        self.assertEqual(done.stdout, "")

    def test_unknown_option(self):
        self.complains("there is no option '--speed' (--help lists them)", "--speed", "9")

    def test_no_value(self):
        self.complains("--nx wants a value", "--nx")

    def test_not_a_number(self):
        self.complains("--radius wants a whole number from 1 to 1024, not '2x'", "--radius", "2x")

    def test_unknown_method(self):
        self.complains("--method wants one of isend-waitall, isend-waitany, sendrecv, persistent, neighbor-alltoallw, not 'telepathy'",
                       "--method", "telepathy")

    def test_neighbors(self):
        self.complains("--neighbours wants 6 or 26, not '18'", "--neighbours=18")

    def test_radius_too_large(self):
        self.complains("--radius 5 is more than the 4 cells a rank has along z", *SMALL, "--radius", "5")

    def test_more_exchanged_than_there_are(self):
        self.complains("--exchanged 3 is more than --quantities 2", "--quantities", "2", "--exchanged", "3")

    def test_grid(self):
        self.complains("--grid does not fit 2 ranks", "--grid", "3,1,0", ranks=2)
        self.complains("--grid wants three numbers X,Y,Z (0: chosen), not '2x1'", "--grid", "2x1")


    def test_device_pointers_to_an_mpi_that_takes_none(self):
        self.complains("--device: this MPI is neither GPU-aware nor with the preload, so it can't take device pointers (--force: all the same)",
                       *SMALL, "--device", ranks=2, LD_LIBRARY_PATH=STAND_IN)

    def test_no_device(self):
        self.complains("--device: cuInit: CUDA_ERROR_NO_DEVICE", *SMALL, "--device", "--force", ranks=2, LD_LIBRARY_PATH=STAND_IN, FAKE_CUDA_DEVICES="0")

    def test_a_device_that_fails(self):
        self.complains("--device: cuInit: CUDA_ERROR_UNKNOWN", *SMALL, "--device", "--force", LD_LIBRARY_PATH=STAND_IN,
                       FAKE_CUDA_FAIL="cuInit:1:CUDA_ERROR_UNKNOWN")


class Runs(unittest.TestCase):
    def test_help(self):
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--spelling", done.stdout)

    def test_json(self):
        done = run(*SMALL, "--json", "-", "--radius", "2", "--grid", "2,1,1", "--open", "--neighbours", "6", ranks=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        # One face of 2 x 5 x 4 doubles to the only neighbor; four exchanges, two ranks.
        self.assertEqual((report["messages_per_exchange"], report["bytes_per_exchange"]), (1, 2 * 5 * 4 * 8))
        self.assertEqual(report["halo_checked"], 2 * 4 * 2 * 5 * 4)
        self.assertEqual(report["wrong"], 0)
        self.assertEqual(len(report["each_exchange_us"]), 3)
        self.assertLessEqual(report["exchange_minimum_us"], report["exchange_median_us"])
        self.assertEqual(report["grid"], [2, 1, 1])

    def test_every_value_is_checked(self):
        done = run(*SMALL, "--json", "-", "--quantities", "3", "--exchanged", "2", "--storage", "interleaved")
        report = json.loads(done.stdout)
        inside, all_cells = 6 * 5 * 4, 8 * 7 * 6
        self.assertEqual(report["halo_checked"], 4 * 2 * (all_cells - inside))
        guards = 2 * 64
        self.assertEqual(report["other_checked"], 4 * (3 * all_cells - 2 * (all_cells - inside) + guards))

    def test_damage_is_found(self):
        for element in ("float", "double"):
            done = run(*SMALL, "--damage", "5", "--json", "-", "--type", element)
            self.assertEqual(done.returncode, 1)
            self.assertEqual(json.loads(done.stdout)["wrong"], 4 * 5)
            self.assertRegex(done.stderr, r"^halo3d: rank 0, exchange 0, quantity 0, local cell x=0 y=0 z=0 .*: holds .*, must hold .*\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
