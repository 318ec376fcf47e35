#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""check_sass.py [--update] [--jobs N]: registers, spills and tensor-core instructions of every GPU kernel.

Compiles kernels/gpu/device/*.cu for sm_90 and reads ptxas' report and the machine code of the objects. Fails if a
kernel uses local memory, spills, or takes more registers than tests/device/sass_sm_90.txt says, if kernels are missing
there or gone, if a kernel with Mma in its name has no HMMA instruction, and if another one has some. Registers are
compared for the nvcc of the table alone: another version allocates others. --update writes the table; it never accepts
local memory, nor a kernel of tensor cores without HMMA. Links the objects to libheadscope_gpu_cuda.so, loads it and
reads its table; no kernel runs. Then compiles the kernels for sm_75, the oldest architecture of nvcc 13, since copies
to shared memory and tensor cores differ there: that they build. Their optimization is low, their registers and spills
are not read. Exit status 77 without nvcc.
"""
import argparse
import concurrent.futures
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from plugin_table import ROOT, problem_of_library

DEVICE = ROOT / "kernels/gpu/device"
TABLE = pathlib.Path(__file__).with_name("sass_sm_90.txt")
SKIPPED = 77
FLAGS = ["-std=c++20", "--expt-relaxed-constexpr", "-diag-suppress", "128", f"-I{ROOT}"]
ARCHITECTURE = "sm_90"
CODE = ["-gencode", f"arch=compute_90,code={ARCHITECTURE}"]
MEASURED = [*CODE, "-c", "-O3", "-Xptxas", "-v", "--no-compress", f"-DHEADSCOPE_GPU_ARCHITECTURES={ARCHITECTURE}",
            "-Xcompiler", "-fPIC,-fvisibility=hidden"]
BUILT = ["-arch=sm_75", "-cubin", "-O1", "-Xcicc", "-O1", "-Xptxas", "-O1"]  # a fifth of the time
ENTRY = re.compile(r"Compiling entry function '(\w+)'")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
REGISTERS = re.compile(r"Used (\d+) registers")
HMMA, OPCODE, INSTRUCTION = 0x23C, 0xFFF, 16  # the opcode, its bits, and bytes of an instruction since sm_70


def find_nvcc():
    return shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")


def version_of(nvcc):
    text = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", text)
    return found[1] if found else "unknown"


def plain(name):
    """Attend<0, 128, true, false> of void headscope::gpu::entry<..>(..)."""
    name = re.sub(r"^void headscope::gpu::entry<(.*)>\(.*$", r"\1", name)
    name = re.sub(r"\(anonymous namespace\)::|_GLOBAL__N_\w*::|headscope::gpu::", "", name)
    return re.sub(r"\((?:Pass|Of)\)", "", name).replace(", ", ",").strip().replace(" >", ">")


def read_report(report):
    """{mangled name: (registers, stack, spills)} of ptxas -v"""
    found, entry, frame = {}, None, (0, 0)
    for line in report.splitlines():
        if match := ENTRY.search(line):
            entry, frame = match[1], (0, 0)
        elif match := FRAME.search(line):
            frame = (int(match[1]), int(match[2]) + int(match[3]))
        elif (match := REGISTERS.search(line)) and entry:
            found[entry] = (int(match[1]), *frame)
            entry = None
    return found


def sections_of(data):
    """(name, begin, end) of each section of an ELF file."""
    table, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", data, table + n * size) for n in range(count)]
    for name, _, _, _, begin, length in sections:
        at = sections[names][4] + name
        yield data[at:data.index(b"\0", at)].decode(), begin, begin + length


def count_hmma(path):
    """{mangled name: HMMA instructions} of an object of one architecture, whose device code is not compressed."""
    data, found = path.read_bytes(), {}
    for fat, begin, end in sections_of(data):
        at = data.find(b"\x7fELF", begin, end) if fat == ".nv_fatbin" else -1
        if at < 0:
            continue
        code = data[at:end]  # a file of its own, with a section for each kernel
        for name, first, last in sections_of(code):
            if name.startswith(".text."):
                codes = (struct.unpack_from("<H", code, x)[0] & OPCODE for x in range(first, last, INSTRUCTION))
                found[name[len(".text."):]] = sum(one == HMMA for one in codes)
    return found


def run(command, place):
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise SystemExit(f"[{place}] expected no errors of {' '.join(command)}; found\n{made.stderr}")
    return made.stderr + made.stdout


def compile_all(nvcc, flags, jobs, folder):
    """(object, ptxas' report) of each source."""

    def compile_source(source):
        made = folder / (source.stem + ".o")
        return made, run([nvcc, *FLAGS, *flags, "-o", str(made), str(source)], source.name)

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(compile_source, sorted(DEVICE.glob("*.cu"))))


def measure(nvcc, jobs):
    """The kernels' numbers by their plain names, and the problem of the library that they make."""
    kernels = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        objects = compile_all(nvcc, MEASURED, jobs, folder)
        for made, report in objects:
            hmma = count_hmma(made)
            kernels.update({kernel: (*numbers, hmma[kernel]) for kernel, numbers in read_report(report).items()})
        library = folder / "libheadscope_gpu_cuda.so"
        run([nvcc, "-shared", *CODE, *(str(made) for made, _ in objects), "-o", str(library)], library.name)
        problem = problem_of_library(library, "cuda", ARCHITECTURE)
    names = subprocess.run(["c++filt"], input="\n".join(kernels), capture_output=True, text=True, check=True).stdout
    return {plain(name): numbers for name, numbers in zip(names.splitlines(), kernels.values())}, problem


def read_table():
    lines = [line.split() for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    version = re.search(r"nvcc (\d+\.\d+\.\d+)", TABLE.read_text(encoding="utf-8"))
    return (version[1] if version else ""), {line[0]: int(line[1]) for line in lines if line}


def write_table(version, kernels):
    lines = ["# SPDX-License-Identifier: GPL-3.0-or-later",
             f"# Registers of each GPU kernel on sm_90 by nvcc {version}; local memory and spills are 0. check_sass.py",
             "# Then the number of HMMA instructions, of kernels on tensor cores."]
    lines += [f"{name} {numbers[0]}" + (f" {numbers[3]}" if numbers[3] else "")
              for name, numbers in sorted(kernels.items())]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def problems_of(kernels, table, compares):
    found = []
    for name, (registers, stack, spills, hmma) in sorted(kernels.items()):
        if bool(hmma) != ("Mma" in name):
            found.append(f"[{name}] expected HMMA in kernels of tensor cores alone; found {hmma}")
        if stack or spills:
            found.append(f"[{name}] expected no local memory; found {stack} bytes of stack, {spills} of spills")
        if name not in table:
            found.append(f"[{name}] expected a kernel of the table; found a new one (--update)")
        elif compares and registers > table[name]:
            found.append(f"[{name}] expected at most {table[name]} registers; found {registers}")
    found += [f"[{name}] expected a kernel of the sources; found one of the table alone (--update)"
              for name in sorted(set(table) - set(kernels))]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    nvcc = find_nvcc()
    if nvcc is None:
        print("check_sass: skipped, no nvcc in PATH or /usr/local/cuda/bin")
        return SKIPPED
    version = version_of(nvcc)
    kernels, problem = measure(nvcc, options.jobs)
    with tempfile.TemporaryDirectory() as folder:
        compile_all(nvcc, BUILT, options.jobs, pathlib.Path(folder))
    if options.update:
        write_table(version, kernels)
    table_version, table = read_table()
    compares = version == table_version
    problems = problems_of(kernels, table, compares)
    if problem:
        problems.append(f"[libheadscope_gpu_cuda.so] expected the plugin's table; found {problem}")
    print(*problems, sep="\n", end="\n" if problems else "")
    also = "" if compares else f"; registers not compared: nvcc {version}, the table has {table_version}"
    print(f"check_sass: {len(kernels)} kernels, {len(problems)} problems, builds for sm_75{also}")
    return 1 if problems or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
