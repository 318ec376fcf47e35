#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Correctness of a GPU's kernels: run.sh calls it in a bundle of pack.sh.

    check.py --backend cuda|hip|emulator --programs FOLDER --sample MODEL --seconds N --table FILE

The kernels' tests on the backend, then two analyses of the sample on it: they agree in every bit, and with an analysis
on the processor within rounding. Each check has a time limit, a failed one does not stop the others. Exit status 1 if
one failed. Standard library only.
"""

import csv
import io
import json
import re
import sys
import tempfile
import time
from pathlib import Path

from steps import Bundle, Failed, append_table, options

# Program, cases on a device, cases on the emulator (which takes a thousand times as long; CTest runs all of them).
# test_emulator compares HEADSCOPE_KERNELS with the reference; the others loop over all backends of the machine.
KERNEL_TESTS = [
    ("test_emulator", [], ["[rows],[running],odd lengths*,gradients of odd shapes*"]),
    ("test_attention_cpu", ["[targets]"], None),
    ("test_attention_backward", ["[targets],[dropout]"], None),
    ("test_recurrent", ["[targets]"], None),
    ("test_recurrent_backward", ["[targets]"], None),
    ("test_running", ["[targets]"], ["[targets]"]),
    ("test_taylor_state", ["[targets]"], None),
]
LENGTHS = {"emulator": [1, 21]}
DEVICE_LENGTHS = [1, 21, 65, 200, 1000]
# CSV files that are compared: figure, and its texts; -1 is the last, the longest.
FIGURES = [("indicators", "all"), ("indicators", -1), ("column-mass", -1), ("loss", -1)]
TIMES = {"output", "seconds"}  # of an analysis's JSON, differ between runs


def kernel_test(bundle, program, cases):
    output = bundle.run(program, [*cases, "--order", "rand", "--rng-seed", "time"], bundle.backend)
    passed = re.search(r"All tests passed \(([1-9]\d* assertions? in \d+ test cases?)\)", output)
    if passed is None:
        raise Failed(f"{program} {' '.join(cases)}: no test ran")
    return passed[1]


def backend_exists(bundle):
    names = bundle.run("headscope", ["list", "kernels"], longest=60).split()
    if bundle.backend not in names:
        raise Failed(f"expected {bundle.backend} among the kernels; found {', '.join(names)}")
    return ", ".join(names)


def write_tokens(path, lengths):
    """Texts of pseudo-random ids of the sample's vocabulary."""
    state, texts = 7, []
    for length in lengths:
        ids = []
        for _ in range(length):
            state = (state * 1103515245 + 12345) % 2**32
            ids.append(2 + (state >> 16) % 2000)
        texts.append(ids)
    path.write_text(json.dumps(texts), encoding="utf-8")


class Analysis:
    """An analysis of the sample: its summary and the CSV files of FIGURES, numbers with all digits."""

    def __init__(self, bundle, sample, tokens, output, on_gpu):
        """`tokens`: a file of write_tokens()."""
        arguments = ["analyze", sample, "--tokens", tokens, "--json", "-o", output]
        if bundle.backend != "emulator":
            arguments += ["--device", bundle.backend if on_gpu else "cpu"]
        backend = bundle.backend if on_gpu and bundle.backend == "emulator" else None
        summary = json.loads(bundle.run("headscope", arguments, backend))
        self.device, self.kernels = summary["device"], summary["kernels"]
        if on_gpu and self.kernels != bundle.backend:
            raise Failed(f"expected an analysis by {bundle.backend}; found one by {self.kernels}")
        self.texts = {"summary": json.dumps({k: v for k, v in summary.items() if k not in TIMES}, sort_keys=True)}
        self.tables = {}
        for figure, text in FIGURES:
            sequence = summary["sequences"] - 1 if text == -1 else text
            name, path = f"{figure} of text {sequence}", output.with_suffix(f".{figure}.{sequence}.csv")
            bundle.run("headscope", ["export", output, "--figure", figure, "--sequence", sequence, "-o", path],
                       longest=60)
            self.texts[name] = path.read_text(encoding="utf-8")
            self.tables[name] = list(csv.reader(io.StringIO(self.texts[name])))


def number(text):
    try:
        return float(text)
    except ValueError:
        return None


def largest_difference(found, expected):
    """(numbers compared, largest difference relative to the expected number and 1) of two tables."""
    if [len(row) for row in found] != [len(row) for row in expected]:
        raise Failed("tables of different sizes")
    count, largest = 0, 0.0
    for row, (cells, other) in enumerate(zip(found, expected)):
        for a, b in zip(cells, other):
            x, y = number(a), number(b)
            if x is None or y is None:
                if a != b:
                    raise Failed(f"row {row}: expected {b or 'nothing'}; found {a or 'nothing'}")
                continue
            count += 1
            if x != y:
                difference = abs(x - y) / max(1.0, abs(y))
                if not difference < float("inf"):
                    raise Failed(f"row {row}: expected {b}; found {a}")
                largest = max(largest, difference)
    return count, largest


def tolerance(sample, lengths):
    """Sums of at most `length` float32 terms in another order, through all layers, and a factor of 10."""
    layers = json.loads((sample / "config.json").read_text(encoding="utf-8"))["num_hidden_layers"]
    return max(lengths) * layers * 2.0**-24 * 10


def analyses(bundle, sample, folder):
    """Rows of the table."""
    lengths = LENGTHS.get(bundle.backend, DEVICE_LENGTHS)
    tokens = folder / "tokens.json"
    write_tokens(tokens, lengths)
    first = {}

    def analyze():
        first["gpu"] = Analysis(bundle, sample, tokens, folder / "gpu.headscope.h5", True)
        return f"{first['gpu'].device}, kernels {first['gpu'].kernels}, texts of {', '.join(map(str, lengths))} tokens"

    def made():
        if not first:
            raise Failed("no analysis to compare with")
        return first["gpu"]

    def repeat():
        expected = made().texts
        again = Analysis(bundle, sample, tokens, folder / "again.headscope.h5", True)
        changed = [name for name, text in again.texts.items() if text != expected[name]]
        if changed:
            raise Failed(f"different bits of {', '.join(changed)}")
        return f"{sum(map(len, again.texts.values()))} equal bytes"

    def compare():
        found = made().tables
        processor = Analysis(bundle, sample, tokens, folder / "cpu.headscope.h5", False)
        allowed, count, largest = tolerance(sample, lengths), 0, 0.0
        for name, table in processor.tables.items():
            try:
                compared, difference = largest_difference(found[name], table)
            except Failed as error:
                raise Failed(f"{name}: {error}") from None
            count, largest = count + compared, max(largest, difference)
        if count == 0 or largest > allowed:
            raise Failed(f"{count} numbers, difference {largest:.2g}, at most {allowed:.2g} is allowed")
        return f"{count} numbers, difference {largest:.2g} of {allowed:.2g}"

    yield "analysis of the sample", analyze
    yield "the same twice: equal bits", repeat
    yield f"the same on the processor ({processor_name()})", compare


def processor_name():
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return "unknown"
    named = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return named[1] if named else "unknown"


def checks(bundle, sample, folder):
    yield "kernels of the machine", lambda: backend_exists(bundle)
    yield from analyses(bundle, sample, folder)
    for program, on_device, on_emulator in KERNEL_TESTS:
        cases = on_emulator if bundle.backend == "emulator" else on_device
        if cases is not None:
            yield " ".join([f"`{program}`", *cases]), lambda p=program, c=cases: kernel_test(bundle, p, c)


def main():
    parser = options(__doc__)
    parser.add_argument("--sample", type=Path, required=True, help="a checkpoint")
    arguments = parser.parse_args()
    bundle = Bundle(arguments)
    rows, failed = [], False
    with tempfile.TemporaryDirectory() as temporary:
        for name, check in checks(bundle, arguments.sample, Path(temporary)):
            began = time.monotonic()
            try:
                result = check()
            except Failed as error:
                result, failed = f"**failed**: {error}", True
            except (KeyError, OSError, ValueError) as error:
                result, failed = f"**failed**: {type(error).__name__} {error}", True
            rows.append([name, result, f"{time.monotonic() - began:.1f}"])
            print(f"{name}: {result} ({rows[-1][2]} s)", flush=True)
    append_table(arguments.table, ["check", "result", "s"], rows, texts=2)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
