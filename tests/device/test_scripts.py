#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""run.sh, check.py, bench.py and pack.sh with stand_in.py for programs: faults are found, named, and stop nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import check

HERE = Path(__file__).resolve().parent
PROGRAMS = ["headscope", "bench_gpu", "test_emulator", "test_attention_cpu", "test_attention_backward",
            "test_recurrent", "test_recurrent_backward", "test_running", "test_taylor_state"]


class Scripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def stand_in(self, path):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable} -IS\n" + (HERE / "stand_in.py").read_text())
        path.chmod(0o755)

    def run_all(self, faults="", seconds=60, backend=()):
        """(exit status, output, the rows of the tables by their first cell). `backend`: options of run.sh; a card."""
        for name in PROGRAMS:
            self.stand_in(self.folder / "bin" / name)
        tools = self.folder / "tools"
        self.stand_in(tools / "compute-sanitizer")
        table = self.folder / "table.md"
        table.unlink(missing_ok=True)
        command = ["bash", HERE / "run.sh", *backend, "--seconds", str(seconds), "-o", table, self.folder]
        environment = {**os.environ, "STAND_IN_FAULTS": faults, "PATH": f"{tools}:{os.environ['PATH']}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        rows = [[cell.strip() for cell in line.strip("|").split(" | ")]
                for line in table.read_text().splitlines() if line.startswith("| ")]
        return done.returncode, done.stdout + done.stderr, {row[0]: row[1:] for row in rows}

    def row(self, rows, start):
        found = [cells[0] for name, cells in rows.items() if name.startswith(start)]
        self.assertEqual(len(found), 1, (start, rows))
        return found[0]

    def check_faults(self, faults, expected, seconds=60, backend=()):
        """`expected`: messages by the start of a row's first cell. No other row fails."""
        status, output, rows = self.run_all(faults, seconds, backend)
        self.assertEqual(status, 1, output)
        for start, message in expected.items():
            with self.subTest(row=start):
                self.assertIn(message, self.row(rows, start))
                self.assertIn("**failed**", self.row(rows, start))
        self.assertEqual(sum("**failed**" in "".join(cells) for cells in rows.values()), len(expected), output)
        self.assertEqual(rows["forward, float32"][0], "1")  # later steps ran
        return output, rows

    def test_without_faults_on_the_emulator(self):
        status, output, rows = self.run_all(backend=["--emulator"])
        self.assertEqual(status, 0, output)
        self.assertNotIn("failed", output)
        self.assertIn("on_device nothing, kernels emulator, texts of 1, 21 tokens", rows["analysis of the sample"][0])
        self.assertIn("difference 6.4e-06, 2.5e-05 allowed, ", self.row(rows, "the same on the processor"))
        self.assertEqual(rows["mixers to train"][0], "2 of 3")
        self.assertEqual(rows["`test_running` [targets]"][0], "5 assertions in 2 test cases")
        self.assertFalse([name for name in rows if name.startswith("memcheck")])
        # Kernel, floor, their ratio, target, with copies, processor, its ratio.
        self.assertEqual(rows["forward, float32"], ["1", "-", "-", "-", "2", "2", "1"])

    def test_without_faults_on_a_card(self):
        status, output, rows = self.run_all()
        self.assertEqual(status, 0, output)
        self.assertNotIn("failed", output)
        self.assertEqual(rows["analysis of the sample"][0],
                         "cuda:0 A card, on_device model, kernels cuda, texts of 1, 21, 65, 200, 1000 tokens")
        self.assertIn("kernels cuda mma, ", rows["bfloat16, on both"][0])
        self.assertEqual(rows["greedy tokens, on both"][0], "3 equal tokens")
        self.assertEqual(rows["mixers to train"][0], "3 of 3")
        self.assertIn("losses 5.5000, 5.4000, 5.3000; 5 numbers", rows["2 steps of fnet, on both"][0])
        self.assertEqual(self.row(rows, "memcheck"), "no faults, 5 assertions in 2 test cases")

    def test_faults_stop_no_other_step(self):
        output, rows = self.check_faults(
            "failed test_running,empty test_emulator,no backend,different bits,not a number,failed statistics",
            {"kernels of the machine": "among the kernels; found AVX3, reference",
             "the same twice": "different bits of indicators of text all, indicators of text 0, ",
             "the same on the processor": "indicators of text all: row 1, value: expected 0.2; found nan",
             "bfloat16": "expected 0.2; found nan",
             "`test_emulator`": "no test ran",
             "`test_running`": "status 1: 1 assertion failed"}, backend=["--emulator"])
        self.assertIn("expected memory on the device", output)
        self.assertEqual(rows["statistics, float32"], ["-"] * 7)

    def test_faults_on_a_card(self):
        # Numbers: of one indicator of one head of the longest text; its column mass; of a mixer.
        part = "expected on_device model; found operators: headscope: --device cuda: single operators: no libtorch_cuda"
        self.check_faults("operators,wrong numbers,other tokens,wrong gradient of gated_deltanet,bad access",
                          {"analysis of the sample": part,
                           "the same on the processor": "difference 0.0005, 3e-05 allowed, of indicators of text 4",
                           "greedy tokens": "expected the tokens [5, 6, 7]; found [5, 6, 8]",
                           "2 steps of gated_deltanet": "difference 0.001, 0.00015 allowed, of gradient of step 1",
                           "memcheck": "status 9: ========= ERROR SUMMARY: 2 errors"})
        _, rows = self.check_faults(
            "operators,no mass,refused standard,no sanitizer here",
            {"the same on the processor": "difference 1, 3e-05 allowed, of column-mass of text 4",
             "bfloat16": "difference 1, 0.016 allowed, of column-mass of text 4",
             "2 steps of standard": "expected a deterministic implementation; found none"}, backend=["--operators"])
        self.assertIn("on_device operators", rows["analysis of the sample"][0])
        self.assertEqual(self.row(rows, "memcheck"), "left out: Device not supported. Please refer to the manual")

    def test_without_a_sanitizer(self):
        with mock.patch("shutil.which", return_value=None):
            self.assertTrue(check.check_memory(None).startswith("left out: no compute-sanitizer"))

    def test_an_analysis_by_other_kernels(self):
        self.check_faults("on the processor", {"analysis of the sample": "found one by AVX3",
                                               "the same twice": "no analysis", "the same on": "no analysis",
                                               "bfloat16": "found one by AVX3"}, backend=["--emulator"])

    def test_time_limits(self):
        status, output, rows = self.run_all("slow list", 24, ["--emulator"])
        self.assertEqual(status, 1, output)
        self.assertIn("took more than 4 s", rows["kernels of the machine"][0])
        self.assertIn("no time left", self.row(rows, "`test_running`"))
        self.assertEqual(rows["forward, float32"][0], "1")

    def test_wrong_arguments(self):
        for words in (["--gpu"], ["--seconds", "x"], [str(HERE)]):
            done = subprocess.run(["bash", HERE / "run.sh", *words], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertTrue(done.stderr.startswith("run.sh: expected "), done.stderr)


@unittest.skipUnless(shutil.which("c++"), "no compiler for empty libraries")
class Pack(unittest.TestCase):
    """A build of empty programs and libraries, with a LibTorch of its own."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.build, self.libtorch = self.folder / "build", self.folder / "libtorch"
        torch, nvidia = self.libtorch / "torch/lib", self.libtorch / "nvidia/cu13/lib"
        for path in (self.build / "bin", self.build / "lib", torch, nvidia):
            path.mkdir(parents=True)
        (self.libtorch / "torch/version.py").write_text("__version__ = '2.14.1'\ndebug = False\n")
        self.needed = self.library(nvidia / "libcutest.so")
        self.library(torch / "libtorch_cpu.so")
        self.library(torch / "libtorch_python.so")
        self.library(torch / "libtorch_cuda.so", self.needed, "-Wl,-rpath,$ORIGIN/../../nvidia/cu13/lib")
        for name in ("kernels", "gpu_cuda", "gpu_emulator"):
            self.library(self.build / f"lib/libheadscope_{name}.so")
        program = self.folder / "program"
        self.compile(program, torch / "libtorch_cpu.so", f"-Wl,-rpath,{torch}", source="int main() {}")
        for name in PROGRAMS:
            shutil.copy(program, self.build / "bin" / name)

    def compile(self, path, *words, source=""):
        subprocess.run(["c++", "-x", "c++", "-", "-x", "none", "-Wl,--no-as-needed", "-o", path, *words], input=source,
                       text=True, check=True)

    def library(self, path, *words):
        self.compile(path, "-shared", f"-Wl,-soname,{path.name}", *words)
        return path

    def pack(self, *words):
        """(exit status, messages, the files of the bundle)."""
        out = self.folder / "out"
        done = subprocess.run(["bash", HERE / "pack.sh", *words, self.build, out], capture_output=True, text=True)
        return done.returncode, done.stderr, {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}

    def test_libtorch(self):
        whole = {"libtorch/torch/lib/libtorch_cuda.so", "libtorch/torch/lib/libtorch_cpu.so",
                 "libtorch/nvidia/cu13/lib/libcutest.so"}
        status, messages, files = self.pack()
        self.assertEqual(status, 0, messages)
        self.assertEqual({name for name in files if name.startswith("libtorch/")}, whole)
        self.assertTrue({"lib/libheadscope_gpu_cuda.so", "check.py", "models.py", "differences.py"} <= files, files)
        self.assertFalse({"operators", "without-libtorch", "lib/libtorch_cpu.so"} & files, files)
        # The bundle's own libraries are enough.
        self.libtorch.rename(self.folder / "gone")
        loaded = subprocess.run(["ldd", self.folder / "out/libtorch/torch/lib/libtorch_cuda.so"], capture_output=True,
                                text=True, check=True).stdout
        self.assertNotIn("not found", loaded)

    def test_libtorch_without_libraries_of_cuda(self):
        self.needed.unlink()
        status, messages, _ = self.pack()
        self.assertEqual(status, 1)
        self.assertIn("expected libraries for whole models; found none of libcutest.so: installer/setup.sh --cuda",
                      messages)
        status, messages, files = self.pack("--operators")
        self.assertEqual(status, 0, messages)
        self.assertTrue({"operators", "lib/libtorch_cpu.so"} <= files, files)
        self.assertFalse([name for name in files if name.startswith("libtorch/")])
        status, messages, files = self.pack("--without-libtorch")
        self.assertEqual(status, 0, messages)
        self.assertEqual((self.folder / "out/without-libtorch").read_text(), "2.14.1\n")
        self.assertFalse([name for name in files if "torch_" in name or name == "operators"])

    def test_the_machines_torch_has_another_version(self):
        self.pack("--without-libtorch")
        other = self.folder / "other"
        other.mkdir()
        (other / "version.py").write_text("__version__ = '2.11.0+cu130'\n")
        command = ["bash", self.folder / "out/run.sh", "--seconds", "22", "-o", self.folder / "table.md"]
        environment = {**os.environ, "HEADSCOPE_TORCH": str(other)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("run.sh: expected torch 2.14.1; found 2.11.0: HEADSCOPE_TORCH names its folder", done.stderr)

    def test_a_build_without_a_gpu_library(self):
        (self.build / "lib/libheadscope_gpu_cuda.so").unlink()
        status, messages, _ = self.pack()
        self.assertEqual(status, 1)
        self.assertIn("expected libheadscope_gpu_cuda.so; found none", messages)


if __name__ == "__main__":
    unittest.main()
