#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Correctness of a GPU's kernels: run.sh calls it in a bundle of pack.sh.

    check.py --backend cuda|hip|emulator --programs FOLDER --sample MODEL --seconds N --table FILE [--operators]

Two analyses of the sample on the backend agree in every bit, and with an analysis on the processor within rounding;
in bfloat16 they agree with the processor, too, as do a greedy answer and two training steps of each mixer. Then the
kernels' tests on the backend, and a part of them under compute-sanitizer. On a card whole models must run there;
--operators accepts single operators. Each check has a time limit, a failed one does not stop the others. Exit status 1
if one failed. Standard library only.
"""

import re
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path

from models import Sample, analyses, generation, trainings
from steps import Bundle, Failed, append_table, options

# Program, cases on a device, cases on the emulator, which takes a thousand times as long.
# test_emulator compares HEADSCOPE_KERNELS with the reference; the others loop over all backends of the machine.
FEW = "[rows],[running],odd lengths*,gradients of odd shapes*"
KERNEL_TESTS = [
    ("test_emulator", [], [FEW]),
    ("test_attention_cpu", ["[targets]"], None),
    ("test_attention_backward", ["[targets],[dropout]"], None),
    ("test_recurrent", ["[targets]"], None),
    ("test_recurrent_backward", ["[targets]"], None),
    ("test_running", ["[targets]"], ["[targets]"]),
    ("test_taylor_state", ["[targets]"], None),
]
SANITIZER = ["--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode", "9"]


def kernel_test(bundle, program, cases, longest=120, tool=()):
    arguments = [*cases, "--order", "rand", "--rng-seed", "time"]
    output = bundle.run(program, arguments, bundle.backend, longest, tool)
    passed = re.search(r"All tests passed \(([1-9]\d* assertions? in \d+ test cases?)\)", output)
    if passed is None:
        raise Failed(f"{program} {' '.join(cases)}: no test ran")
    return passed[1]


def find_sanitizer():
    """In PATH, or in nvcc's folder."""
    nvcc = shutil.which("nvcc")
    folders = [Path(nvcc).resolve().parent] if nvcc else []
    places = [None, *folders, Path("/usr/local/cuda/bin")]
    return next(filter(None, (shutil.which("compute-sanitizer", path=place) for place in places)), None)


def check_memory(bundle):
    sanitizer = find_sanitizer()
    if sanitizer is None:
        return "left out: no compute-sanitizer in PATH, with nvcc or in /usr/local/cuda/bin"
    try:
        passed = kernel_test(bundle, "test_emulator", [FEW], 90, [sanitizer, *SANITIZER])
    except Failed as error:
        refusal = re.search(r"^=+ Error: (.*not supported.*)$", error.output, re.MULTILINE | re.IGNORECASE)
        if refusal is None:
            raise
        return f"left out: {refusal[1]}"  # by some virtual machines
    return f"no faults, {passed}"


def backend_exists(bundle):
    names = bundle.names("kernels")
    if bundle.backend not in names:
        raise Failed(f"expected {bundle.backend} among the kernels; found {', '.join(names)}")
    return ", ".join(names)


def checks(bundle, arguments, folder):
    yield "kernels of the machine", lambda: backend_exists(bundle)
    sample = Sample(bundle, arguments.sample, folder)
    yield from analyses(bundle, sample, arguments.operators)
    yield from generation(bundle, sample)
    for program, on_device, on_emulator in KERNEL_TESTS:
        cases = on_emulator if bundle.emulated else on_device
        if cases is not None:
            yield " ".join([f"`{program}`", *cases]), lambda p=program, c=cases: kernel_test(bundle, p, c)
    yield from trainings(bundle, folder)
    if bundle.backend == "cuda":
        yield f"memcheck of `test_emulator` {FEW}", lambda: check_memory(bundle)


def main():
    parser = options(__doc__)
    parser.add_argument("--sample", type=Path, required=True, help="a checkpoint")
    parser.add_argument("--operators", action="store_true", help="whole models need not run on the card")
    arguments = parser.parse_args()
    bundle = Bundle(arguments)
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as temporary:
        for name, check in checks(bundle, arguments, Path(temporary)):
            began = time.monotonic()
            try:
                result = check()
            except Failed as error:
                result, failed = f"**failed**: {error}", True
            except (KeyError, OSError, TypeError, ValueError, struct.error) as error:
                result, failed = f"**failed**: {type(error).__name__} {error}", True
            rows.append([name, result, f"{time.monotonic() - began:.1f}"])
            print(f"{name}: {result} ({rows[-1][2]} s)", flush=True)
    append_table(arguments.table, ["check", "result", "s"], rows, texts=2)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
