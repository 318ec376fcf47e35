#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""installer/setup.sh --cuda and --rocm, with a stand-in for pip and wheels made here: nothing is fetched."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

INSTALLER = Path(__file__).resolve().parents[2] / "installer"

# "pip download" copies the wheels that the list names; the rest of Python is Python.
PYTHON = """#!{python}
import os, re, shutil, sys
from pathlib import Path
words = sys.argv[1:]
if words[:2] != ["-m", "pip"]:
    os.execv("{python}", ["{python}"] + words)
if "download" in words:
    store, listed = Path("{store}"), Path(words[words.index("-r") + 1])
    with open(store / "log", "a") as log:
        log.write(listed.name + "\\n")
    target = Path(words[words.index("--dest") + 1])
    target.mkdir(parents=True)
    for name in re.findall(r"^([a-z0-9-]+)==", listed.read_text(), re.MULTILINE):
        shutil.copy(store / (name + ".whl"), target)
"""


class SetUp(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.checkout, self.store, self.tools = (self.folder / name for name in ("checkout", "store", "tools"))
        for path in (self.checkout / "installer", self.store, self.tools):
            path.mkdir(parents=True)
        for name in ("setup.sh", "packages.txt"):
            shutil.copy(INSTALLER / name, self.checkout / "installer")
        self.tool("python3", PYTHON.format(python=sys.executable, store=self.store))
        self.tool("dpkg-query", "#!/bin/sh\nprintf installed\n")
        self.wheels("wheels.txt", {"torch": ["torch/lib/libtorch_cuda.so"],
                                   "nvidia-cuda-runtime": ["nvidia/cu13/lib/libcudart.so.13"]})
        self.wheels("wheels-arrow.txt", {})
        self.wheels("wheels-cuda.txt", {"nvidia-cublas": ["nvidia/cu13/lib/libcublas.so.13"],
                                        "nvidia-cudnn-cu13": ["nvidia/cudnn/lib/libcudnn.so.9"]})

    def tool(self, name, text):
        path = self.tools / name
        path.write_text(text)
        path.chmod(0o755)

    def wheels(self, listed, contents):
        lines = []
        for name, files in contents.items():
            wheel = self.store / (name + ".whl")
            with zipfile.ZipFile(wheel, "w") as archive:
                for file in files:
                    archive.writestr(file, name + " " + file)
            lines.append(name + "==2.14.1 --hash=sha256:" + hashlib.sha256(wheel.read_bytes()).hexdigest())
        (self.checkout / "installer" / listed).write_text("\n".join(lines) + "\n")

    def run_setup(self, *words):
        environment = dict(os.environ, PATH=str(self.tools) + ":" + os.environ["PATH"])
        return subprocess.run([self.checkout / "installer/setup.sh", "--no-parquet", *words], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=60)

    def fetched(self):
        log = self.store / "log"
        return log.read_text().split() if log.exists() else []

    def refused(self, outcome, text, status=1):
        self.assertEqual(outcome.returncode, status, outcome.stderr)
        self.assertIn("setup.sh: " + text, outcome.stderr.splitlines()[-1])

    @unittest.skipUnless(Path("/etc/os-release").exists() and "ID=debian" in Path("/etc/os-release").read_text(),
                         "packages are looked up on Debian only")
    def test_cuda_comes_once_into_libtorch(self):
        libraries = self.checkout / ".deps/libtorch/nvidia"
        outcome = self.run_setup()
        self.assertEqual((outcome.returncode, self.fetched()), (0, ["wheels.txt"]), outcome.stderr)
        self.assertFalse((libraries / "cudnn").exists())
        for _ in range(2):
            outcome = self.run_setup("--cuda")
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertEqual(self.fetched(), ["wheels.txt", "wheels-cuda.txt"])
        for file, text in (("cu13/lib/libcudart.so.13", "nvidia-cuda-runtime"),
                           ("cu13/lib/libcublas.so.13", "nvidia-cublas"),
                           ("cudnn/lib/libcudnn.so.9", "nvidia-cudnn-cu13")):
            self.assertTrue((libraries / file).read_text().startswith(text + " "), file)
        # A new LibTorch keeps them.
        self.wheels("wheels.txt", {"torch": ["torch/lib/libtorch_cuda.so", "torch/lib/libtorch_cpu.so"]})
        self.assertEqual(self.run_setup().returncode, 0)
        self.assertEqual(self.fetched(), ["wheels.txt", "wheels-cuda.txt", "wheels.txt"])
        self.assertTrue((libraries / "cudnn/lib/libcudnn.so.9").exists())

    def test_a_wheel_of_another_hash_is_refused(self):
        listed = self.checkout / "installer/wheels-cuda.txt"
        text = listed.read_text()
        listed.write_text(re.sub("sha256:.{8}", "sha256:00000000", text, count=1))
        outcome = self.run_setup("--cuda")
        self.refused(outcome, "[.deps/wheels/nvidia-cublas.whl] expected a SHA-256 that installer/wheels-cuda.txt")
        self.assertFalse((self.checkout / ".deps/libtorch/nvidia/cudnn").exists())

    def test_rocm_takes_a_wheel_of_libtorchs_version(self):
        self.refused(self.run_setup("--rocm"), "--rocm: expected a ROCm torch wheel", 2)
        self.refused(self.run_setup("--rocm", "absent.whl"), "[--rocm] expected the file of a ROCm torch wheel")
        wheel = self.folder / "torch-2.13.0+rocm7.0-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("torch/lib/libtorch_hip.so", "hip")
        self.refused(self.run_setup("--rocm", wheel.name), "[--rocm] expected torch-2.14.1+rocm*.whl")
        wheel = wheel.rename(self.folder / wheel.name.replace("2.13.0", "2.14.1"))
        for _ in range(2):
            outcome = self.run_setup("--rocm", wheel.name)
            self.assertEqual(outcome.returncode, 0, outcome.stderr)
            self.assertIn("-DHEADSCOPE_LIBTORCH=" + str(self.checkout / ".deps/libtorch-rocm"), outcome.stderr)
        self.assertTrue((self.checkout / ".deps/libtorch-rocm/torch/lib/libtorch_hip.so").exists())
        other = self.folder / "torch-2.14.1+rocm8.0-cp311-cp311-linux_x86_64.whl"
        with zipfile.ZipFile(other, "w") as archive:
            archive.writestr("torch/lib/libtorch_cpu.so", "cpu")
        self.refused(self.run_setup("--rocm", other.name), f"[{other}] expected a wheel with torch/lib/libtorch_hip.so")
        self.assertTrue((self.checkout / ".deps/libtorch-rocm/torch/lib/libtorch_hip.so").exists())


class Lists(unittest.TestCase):
    def test_lists_name_versions_and_hashes_only(self):
        for listed in sorted(INSTALLER.glob("wheels*.txt")):
            lines = [line for line in listed.read_text().splitlines() if not line.startswith("#")]
            self.assertTrue(lines, listed)
            for line in lines:
                self.assertRegex(line, r"^[a-z0-9-]+==[0-9.]+ --hash=sha256:[0-9a-f]{64}$")


if __name__ == "__main__":
    unittest.main()
