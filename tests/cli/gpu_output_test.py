#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Like output_test.py, for device memory: the output without a GPU and with the stand-in driver."""
import json
import os
import re
import subprocess
import unittest

import output_test

STAND_IN = os.environ.get("STAND_IN_DRIVER")
GPU_KERNELS = os.environ["GPU_KERNELS"] == "yes"
WRITE_PROFILE = os.environ["WRITE_PROFILE"]


class Info(output_test.CommandTest):
    def test_kernels_and_no_driver(self):
        text = self.good("info", BESTRIDE_GPU="off")
        self.assertIn("GPU kernels      " + ("in this build\n" if GPU_KERNELS else "left out of this build: nvcc was not found"), text)
        self.assertIn("CUDA driver      BESTRIDE_GPU=off\n", self.good("info", BESTRIDE_GPU="off"))
        self.assertIn("CUDA driver      BESTRIDE_CUDA_DRIVER=/nowhere can't be loaded\n", self.good("info", BESTRIDE_CUDA_DRIVER="/nowhere"))

    @unittest.skipUnless(STAND_IN, "the stand-in driver is not run here")
    def test_the_stand_in_driver_is_seen_and_said(self):
        text = self.good("info", BESTRIDE_CUDA_DRIVER=STAND_IN, FAKE_CUDA_CAPABILITY="80")
        self.assertIn("CUDA driver      CUDA 13.0 (stand-in driver: no GPU behind it), 2 devices: Stand-in, capability 8.0; Stand-in, capability 8.0\n", text)


class Explain(output_test.CommandTest):
    def device(self, *words, **environment):
        """{way: (predicted, chosen)} of `explain --device`."""
        text = self.good("explain", *words, "--device", **environment)
        ways = dict(re.findall(r"^  (oneshot|staged|pipelined|copy-engine|device) +(\S.*)$", text, re.MULTILINE))
        self.assertEqual(set(ways), {"oneshot", "staged", "pipelined", "copy-engine", "device"})
        self.assertEqual(text.count("<- chosen: "), 1)
        return text, ways

    def test_device_memory(self):
        text, ways = self.device("vector(1000,1,2,double)", "1")
        self.assertIn("call       send, peer on this node, device memory, which MPI does not take\n", text)
        self.assertIn("layout     1000 x 16 | 8 B\n", text)
        self.assertIn("call       pack, device memory, packed buffer in host memory\n", self.device("int", "--call", "pack")[0])
        self.assertIn("call       unpack, device memory, packed buffer too\n", self.device("int", "--call", "unpack", "--aware")[0])
        self.assertRegex(text, r"kernels    words 8")
        self.assertEqual(ways["device"], "not possible here")
        self.assertRegex(ways["copy-engine"], "^predicted ")
        if GPU_KERNELS:
            self.assertRegex(ways["oneshot"], "^predicted .*<- chosen: predicted ")
            _, ways = self.device("vector(1000000,1,2,double)", "8")
            self.assertRegex(ways["pipelined"], r"^predicted \S+ ms in chunks of \d+ [KM]iB  <- chosen: ")
            _, ways = self.device("vector(1000000,1,2,double)", "8", "--aware")
            self.assertIn("<- chosen: ", ways["device"])
        _, ways = self.device("vector(64,8192,16384,double)", "1")
        self.assertIn("<- chosen: ", ways["copy-engine"])
        text, ways = self.device("contiguous(100,double)", "5")
        self.assertIn("<- chosen: the bytes are contiguous: one copy", ways["staged"])
        self.assertIn("none: contiguous bytes are copied", text)

    def test_bulk_copies_where_they_were_measured_to_be_faster(self):
        path = f"{self.prefix}/home/.config/bestride/profile.json"
        subprocess.run([WRITE_PROFILE, path, "here", "Stand-in, CUDA 13.0", "options"], check=True)
        self.assertRegex(self.device("vector(1000,128,256,double)")[0], r"kernels    bulk\b")
        self.assertRegex(self.device("vector(1000,32,64,double)")[0], r"kernels    words 16\b")
        subprocess.run([WRITE_PROFILE, path, "here", "Stand-in, CUDA 13.0"], check=True)
        self.assertRegex(self.device("vector(1000,128,256,double)")[0], r"kernels    words 16\b")

    def test_device_memory_forced(self):
        _, ways = self.device("vector(64,8192,16384,double)", BESTRIDE_STRATEGY="copy-engine")
        self.assertIn("<- chosen: BESTRIDE_STRATEGY=copy-engine forces it", ways["copy-engine"])
        _, ways = self.device("contiguous(100,double)", BESTRIDE_STRATEGY="pack")
        self.assertNotIn("forces", "".join(ways.values()))
        self.assertIn("\n  engine   <- chosen", self.good("explain", "vector(9,1,2,int)", BESTRIDE_STRATEGY="oneshot"))
        done = self.run_command("explain", "int", "--device", BESTRIDE_STRATEGY="oneshott")
        self.assertIn("BESTRIDE_STRATEGY='oneshott' is not one of auto|forward|respell|pack|oneshot", done.stderr)
        self.refused("explain", "int", "--aware")

    def test_device_memory_as_json(self):
        answer = json.loads(self.good("explain", "vector(64,8192,16384,double)", "--device", "--json"))
        self.assertEqual(set(answer["seconds"]), {"oneshot", "staged", "pipelined", "copy-engine", "device"})
        self.assertEqual(answer["strategy"], "copy-engine")
        self.assertIsNone(answer["seconds"]["device"])


@unittest.skipUnless(STAND_IN, "the stand-in driver is not run here")
class Doctor(output_test.CommandTest):
    def findings(self, *words, code, **environment):
        self.launcher("mpiexec", "mpiexec.hydra")
        done = self.run_command("doctor", *words, **environment)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        return done.stdout

    def test_gpu(self):
        stand_in = {"BESTRIDE_CUDA_DRIVER": STAND_IN}
        kernels = 0 if GPU_KERNELS else 1
        self.assertIn("note     gpu       BESTRIDE_GPU=off; host memory is not affected\n", self.findings("/bin/true", code=0, BESTRIDE_GPU="off"))
        text = self.findings("/bin/true", code=kernels, **stand_in)
        self.assertIn("ok       gpu       CUDA 13.0 (stand-in driver: no GPU behind it), 2 devices: ", text)
        self.assertRegex(text, r"gpu       GPU kernels are (in this build|left out of this build)")
        old = self.findings("/bin/true", code=1, FAKE_CUDA_VERSION="11040", **stand_in)
        self.assertRegex(old, r"problem  gpu       the CUDA driver is for CUDA 11\.4, older than 12\.0")
        self.assertIn("problem  gpu       CUDA 13.0 (stand-in driver: no GPU behind it): cuInit: ",
                      self.findings("/bin/true", code=1, FAKE_CUDA_FAIL="cuInit:1:999", **stand_in))
        self.assertIn("note     gpu       CUDA 13.0 (stand-in driver: no GPU behind it): the CUDA driver sees no device",
                      self.findings("/bin/true", code=0, FAKE_CUDA_FAIL="cuInit:1:100", **stand_in))

    def test_gpu_curves(self):
        path = f"{self.prefix}/home/.config/bestride/profile.json"
        kernels = 0 if GPU_KERNELS else 1
        for gpu, code, said in (("none", kernels, "note     gpu       %s has no GPU curves, so the built-in ones are used; 'bestride calibrate --only gpu'"),
                                ("Stand-in, CUDA 13.0", kernels, "ok       gpu       %s has curves of this GPU"),
                                ("Abacus 4000, CUDA 12.4", 1, "problem  gpu       %s: the profile was measured with another GPU or driver ('Abacus 4000, CUDA 12.4', here 'Stand-in, ")):
            subprocess.run([WRITE_PROFILE, path, "here", *([] if gpu == "none" else [gpu])], check=True)
            self.assertIn(said % path, self.findings("/bin/true", code=code, BESTRIDE_CUDA_DRIVER=STAND_IN))


if __name__ == "__main__":
    unittest.main(verbosity=2)
