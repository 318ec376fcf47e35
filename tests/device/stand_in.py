# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands in for each program of a bundle, and for compute-sanitizer: test_scripts.py copies it to their names, with a
first line for the interpreter. STAND_IN_FAULTS lists faults."""

import json
import os
import struct
import sys
import time
from pathlib import Path

NAME, WORDS, FAULTS = Path(sys.argv[0]).name, sys.argv[1:], os.environ["STAND_IN_FAULTS"].split(",")
EMULATED = os.environ.get("HEADSCOPE_KERNELS")


def after(option, default=None):
    return WORDS[WORDS.index(option) + 1] if option in WORDS else default


ON_GPU = EMULATED is not None or after("--device") == "cuda"
KERNELS = (EMULATED or "cuda") if ON_GPU else "AVX3"


def test():
    if "failed " + NAME in FAULTS:
        sys.exit("1 assertion failed")
    print("No test cases matched" if "empty " + NAME in FAULTS else "All tests passed (5 assertions in 2 test cases)")


def sanitize():
    if "no sanitizer here" in FAULTS:
        print("========= Error: Device not supported. Please refer to the manual\n========= done")
        sys.exit(1)
    import subprocess  # costs the others time
    program = next(n for n, word in enumerate(WORDS) if word.startswith("/"))
    assert WORDS[:program] == ["--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9"]
    subprocess.run(WORDS[program:], check=True)
    errors = 2 * ("bad access" in FAULTS)
    print(f"========= ERROR SUMMARY: {errors} errors")
    sys.exit(9 if errors else 0)


def bench():
    if "failed " + WORDS[0] in FAULTS:
        sys.exit("bench_gpu: [attention] expected memory on the device; found none")
    print(json.dumps(dict(backend=KERNELS, device="cpu", call=0.002, kernel=0.001 if ON_GPU else None)))


def list_names():
    names = ["standard", "gated_deltanet", "fnet"]
    if WORDS[1] == "kernels":
        names = ["AVX3", "reference"] if "no backend" in FAULTS else ["AVX3", "emulator", "cuda", "reference"]
        if "slow list" in FAULTS:
            time.sleep(60)
    print(json.dumps([dict(name=name) for name in names]))


def analyze():
    lengths = [len(ids) for ids in json.loads(Path(after("--tokens")).read_text())]
    kernels = KERNELS + (" mma" if ON_GPU and after("--dtype") == "bfloat16" else "")
    Path(after("-o")).write_text(json.dumps(dict(gpu=ON_GPU, lengths=lengths)))
    settings = {}
    if ON_GPU and not EMULATED:
        settings["on_device"] = "operators" if "operators" in FAULTS else "model"
        part = "single operators: no libtorch_cuda.so" if "operators" in FAULTS else "whole models"
        print("headscope: --device cuda:", part, file=sys.stderr)
    print(json.dumps(dict(device="cuda:0 A card" if settings else "cpu", settings=settings, seconds=time.time(),
                          kernels="AVX3" if "on the processor" in FAULTS else kernels, sequences=len(lengths),
                          output=after("-o"))))


def export():
    source, figure, sequence = Path(WORDS[1]), after("--figure"), after("--sequence")
    content = json.loads(source.read_text())
    gpu, last = content["gpu"], sequence == str(len(content["lengths"]) - 1)
    length = max(content["lengths"]) if sequence == "all" else content["lengths"][int(sequence)]
    rounded = 1 + 1e-7 * gpu
    planted = 5e-4 if gpu and last and "wrong numbers" in FAULTS else 0
    if figure == "indicators":
        rows = ["model,layer,head,indicator,value"]
        for head in range(4):
            rows += [f"m,1,{head},mean_distance,{(0.1 + head) * length * rounded}",
                     f"m,1,{head},sink,{0.2 * (head + 1) * rounded + 0.8 * planted * (head == 1)}",
                     f"m,1,{head},sparsity,{1e-7 * gpu}"]
        if "not a number" in FAULTS and gpu:
            rows[2] = "m,1,0,sink,nan"
    elif figure == "column-mass":
        none = gpu and last and "no mass" in FAULTS
        rows = ["model,position,mass"] + [f"m,{n},{0 if none else rounded / (n + 50)}" for n in range(length)]
    else:
        rows = ["model,position,token,loss"] + [f"m,{n},t{n},{(n % 9) * rounded}" for n in range(1, length)]
    if "different bits" in FAULTS and source.name.startswith("again"):
        rows[-1] += "1"
    Path(after("-o")).write_text("\r\n".join(rows) + "\r\n")


def generate():
    print(json.dumps(dict(ids=[5, 6, 8 if ON_GPU and "other tokens" in FAULTS else 7])))


def train():
    job = Path(WORDS[1]).read_text()
    mixer = next(line.split('"')[1] for line in job.splitlines() if line.startswith("mixer = "))
    if ON_GPU and "refused " + mixer in FAULTS:
        sys.exit("headscope: [cumsum_cuda_kernel] expected a deterministic implementation; found none")
    wrong = 1 + 1e-3 * (ON_GPU and "wrong gradient of " + mixer in FAULTS)
    events = [(8, b"a note, longer than a step of the journal is" * 2), (2, (1, 40, 5.5, 1e-3, 2.0 * wrong)),
              (2, (2, 80, 5.4, 1e-3, 1.9))]
    data = b"HSEVENTS" + bytes(8)
    for kind, content in events:
        payload = content if kind == 8 else struct.pack("<dqqdddddd", time.time(), *content, 1.0, 2.0, 3.0)
        data += struct.pack("<IHHII", 0xFF4E5648, kind, 0, len(payload), 0) + payload
    run = Path(after("-o"))
    run.mkdir()
    (run / "events.log").write_bytes(data)
    print(json.dumps(dict(validation=5.3)))


if NAME.startswith("test_"):
    test()
elif NAME == "compute-sanitizer":
    sanitize()
elif NAME == "bench_gpu":
    bench()
else:
    {"list": list_names, "analyze": analyze, "export": export, "generate": generate, "train": train}[WORDS[0]]()
