#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""run.sh, check.py, bench.py and pack.sh with stand-ins for the programs: faults are found, named, and stop nothing."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = ["headscope", "bench_gpu", "test_emulator", "test_running"]

# Behaves as the programs do; STAND_IN_FAULTS lists faults.
STAND_IN = """#!{python}
import json, os, sys, time
from pathlib import Path
name, words, faults = Path(sys.argv[0]).name, sys.argv[1:], os.environ["STAND_IN_FAULTS"].split(",")
kernels = os.environ.get("HEADSCOPE_KERNELS", "AVX3")
if name.startswith("test_"):
    if "failed " + name in faults:
        sys.exit("1 assertion failed")
    print("No test cases matched" if "empty " + name in faults else
          "All tests passed (5 assertions in 2 test cases)")
elif name == "bench_gpu":
    if "failed " + words[0] in faults:
        sys.exit("bench_gpu: [attention] expected memory on the device; found none")
    print(json.dumps(dict(backend=kernels, device="cpu", call=0.002, kernel=None if kernels == "AVX3" else 0.001)))
elif words[0] == "list":
    if "slow list" in faults:
        time.sleep(60)
    print("AVX3" if "no backend" in faults else "AVX3\\nemulator\\nreference")
elif words[0] == "analyze":
    output = Path(words[words.index("-o") + 1])
    output.write_text(kernels)
    used = "AVX3" if "on the processor" in faults else kernels
    print(json.dumps(dict(device="cpu", kernels=used, sequences=2, seconds=time.time(), output=str(output))))
elif words[0] == "export":
    source, emulated = Path(words[1]), Path(words[1]).read_text() != "AVX3"
    value = 2.0 + 1e-7 * emulated
    if "wrong numbers" in faults and emulated:
        value = 2.001
    if "different bits" in faults and source.name.startswith("again"):
        value += 1e-12
    if "not a number" in faults and emulated:
        value = "nan"
    Path(words[words.index("-o") + 1]).write_text("layer,head,value\\r\\n0,1," + str(value) + "\\r\\n")
"""


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in PROGRAMS:
            path = self.folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(STAND_IN.format(python=sys.executable))
            path.chmod(0o755)

    def run_all(self, faults="", seconds=60):
        """(exit status, output, the rows of the tables by their first cell)."""
        table = self.folder / "table.md"
        command = ["bash", HERE / "run.sh", "--emulator", "--seconds", str(seconds), "-o", table, self.folder]
        done = subprocess.run(command, env={**os.environ, "STAND_IN_FAULTS": faults}, capture_output=True, text=True)
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")]
                for line in table.read_text().splitlines() if line.startswith("| ")]
        return done.returncode, done.stdout + done.stderr, {row[0]: row[1:] for row in rows}

    def check_faults(self, faults, expected, seconds=60):
        """`expected`: messages by the start of a row's first cell."""
        status, output, rows = self.run_all(faults, seconds)
        self.assertEqual(status, 1, output)
        for start, message in expected.items():
            with self.subTest(row=start):
                found = [cells[0] for name, cells in rows.items() if name.startswith(start)]
                self.assertEqual(len(found), 1, output)
                self.assertIn(message, found[0])
                self.assertIn("**failed**", found[0])
        self.assertEqual(rows["forward, float32"][0], "1")  # later steps ran
        return output, rows

    def test_without_faults(self):
        status, output, rows = self.run_all()
        self.assertEqual(status, 0, output)
        self.assertNotIn("failed", output)
        self.assertEqual(rows["`test_running` [targets]"][0], "5 assertions in 2 test cases")
        compared = next(cells for name, cells in rows.items() if name.startswith("the same on the processor"))
        self.assertTrue(compared[0].startswith("12 numbers, difference 5e-08 of "), compared)
        # Kernel, floor, their ratio, target, with copies, processor, its ratio.
        self.assertEqual(rows["forward, float32"], ["1", "-", "-", "-", "2", "2", "1"])

    def test_faults_stop_no_other_step(self):
        output, rows = self.check_faults(
            "failed test_running,empty test_emulator,no backend,different bits,wrong numbers,failed statistics",
            {"kernels of the machine": "among the kernels; found AVX3",
             "the same twice": "different bits of indicators of text all, indicators of text 1, ",
             "the same on the processor": "difference 0.0005, at most",
             "`test_emulator`": "no test ran",
             "`test_running`": "status 1: 1 assertion failed"})
        self.assertIn("expected memory on the device", output)
        self.assertEqual(rows["statistics, float32"], ["-"] * 7)
        self.check_faults("not a number", {"the same on the processor": "expected 2.0; found nan"})

    def test_an_analysis_by_other_kernels(self):
        self.check_faults("on the processor", {"analysis of the sample": "found one by AVX3",
                                               "the same twice": "no analysis", "the same on": "no analysis"})

    def test_time_limits(self):
        self.check_faults("slow list", {"kernels of the machine": "took more than 4 s",
                                        "`test_running`": "no time left"}, seconds=24)

    def test_wrong_arguments(self):
        for words in (["--gpu"], ["--seconds", "x"], [str(HERE)]):
            done = subprocess.run(["bash", HERE / "run.sh", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(done.stderr.startswith("run.sh: expected "), done.stderr)

    def test_a_build_without_a_gpu_library(self):
        command = ["bash", HERE / "pack.sh", self.folder, self.folder / "out"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("expected libheadscope_gpu_cuda.so; found none", done.stderr)


if __name__ == "__main__":
    unittest.main()
