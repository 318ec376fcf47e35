#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check_hip.py [--jobs N] [--architecture NAME]: the GPU kernels as hipcc compiles them.

Compiles kernels/gpu/device/*.cu for gfx90a, links libheadscope_gpu_hip.so and loads it. Fails if a source does not
compile, a kernel uses more than 64 bytes of scratch memory a thread, or the library's table cannot be read. For other
architectures the library is built without optimization, and their scratch memory is not bounded. No kernel runs. Exit
status 77 without hipcc.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from plugin_table import ROOT, problem_of_library

DEVICE = ROOT / "kernels/gpu/device"
SKIPPED = 77
BOUNDED = "gfx90a"
MOST_SCRATCH = 64  # bytes a thread; 36 are taken where many scalar registers spill
FLAGS = ["-x", "hip", "-std=c++20", "-fgpu-flush-denormals-to-zero", "-fPIC", "-fvisibility=hidden",
         "-Rpass-analysis=kernel-resource-usage", f"-I{ROOT}"]
BUILT = "-O0"  # of other architectures: a quarter of the time
KERNEL = "5entryI"  # in the mangled names of kernels: entry<...>
REMARK = re.compile(r"remark:\s+(Function Name|ScratchSize)[^:]*: (\S+)")


def read_report(report):
    """{mangled name: {field: value}} of the remarks on kernels."""
    found, fields = {}, None
    for line in report.splitlines():
        match = REMARK.search(line)
        if not match:
            continue
        if match[1] == "Function Name":
            fields = found.setdefault(match[2], {}) if KERNEL in match[2] else None
        elif fields is not None:
            fields[match[1]] = int(match[2])
    return found


def run(command, place):
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise SystemExit(f"[{place}] expected a source that hipcc compiles; found\n{made.stderr}")
    return made.stderr


def compile_library(hipcc, architecture, jobs, folder):
    """The kernels' reports; the library is folder/libheadscope_gpu_hip.so."""
    sources = sorted(DEVICE.glob("*.cu"))
    optimization = "-O3" if architecture == BOUNDED else BUILT

    def compile_source(source):
        return run([hipcc, *FLAGS, optimization, f"-DHEADSCOPE_GPU_ARCHITECTURES={architecture}",
                    f"--offload-arch={architecture}", "-c", str(source), "-o", str(folder / (source.stem + ".o"))],
                   source.name)

    kernels = {}
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for report in pool.map(compile_source, sources):
            kernels.update(read_report(report))
    run([hipcc, "-shared", f"--offload-arch={architecture}", *map(str, sorted(folder.glob("*.o"))), "-o",
         str(folder / "libheadscope_gpu_hip.so")], "libheadscope_gpu_hip.so")
    return kernels


def problems_of(kernels):
    found = []
    for name, fields in sorted(kernels.items()):
        if fields["ScratchSize"] > MOST_SCRATCH:
            found.append(f"[{name}] expected at most {MOST_SCRATCH} bytes of scratch; found {fields['ScratchSize']}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--architecture", default=BOUNDED)
    options = parser.parse_args()
    hipcc = shutil.which("hipcc")
    if hipcc is None:
        print("check_hip: skipped, no hipcc in PATH")
        return SKIPPED
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        kernels = compile_library(hipcc, options.architecture, options.jobs, folder)
        problems = problems_of(kernels) if options.architecture == BOUNDED else []
        problem = problem_of_library(folder / "libheadscope_gpu_hip.so", "hip", options.architecture)
    if problem:
        problems.append(f"[libheadscope_gpu_hip.so] expected the plugin's table; found {problem}")
    print(*problems, sep="\n", end="\n" if problems else "")
    scratch = max((fields["ScratchSize"] for fields in kernels.values()), default=0)
    print(f"check_hip: {len(kernels)} kernels for {options.architecture}, {len(problems)} problems, " +
          (f"at most {scratch} bytes of scratch memory a thread" if options.architecture == BOUNDED else BUILT))
    return 1 if problems or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
