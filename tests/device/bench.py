#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed of a GPU's kernels: run.sh calls it in a bundle of pack.sh, after check.py.

    bench.py --backend cuda|hip|emulator --programs FOLDER --seconds N --table FILE

Causal attention of one text: 32 heads of 128 numbers, 4096 tokens (on the emulator tiny, its times mean nothing). For
each operation medians of 20 rounds of the kernel (operands on the card) and of the call (operands copied there and
back), of three on the processor, the roofline's floor and the target for the card. What there is no time for is "-".
Exit status 1 if an operation failed. Standard library only.
"""

import json
import sys
import time

from steps import Bundle, Failed, append_table, options

SHAPE, TINY = (4096, 32, 128), (40, 2, 16)  # tokens, heads, numbers of a head
ROUNDS, PROCESSOR_ROUNDS = 20, 3

# Operations per pair of query and key and number of a head, in matrix products: forward S and A V; statistics S again;
# backward S and dA twice, and dV, dK, dQ.
OPERATIONS = {"forward": 4, "statistics": 6, "backward": 14}
TYPES = ["float32", "bfloat16"]

# Operations per second in matrix products: float32 arithmetic, and bfloat16 on tensor cores by mma.sync.
HOPPER = {"float32": 59.3e12, "bfloat16": 620e12}
RATES = {"H100 80GB HBM3": HOPPER, "H200": HOPPER}
# Milliseconds at SHAPE on these cards.
TARGETS = {("forward", "float32"): 3.3, ("statistics", "float32"): 5.1, ("backward", "float32"): 12.0,
           ("forward", "bfloat16"): 0.54, ("statistics", "bfloat16"): 1.25, ("backward", "bfloat16"): 2.3}

HEADER = ["operation", "kernel, ms", "floor, ms", "kernel / floor", "target, ms", "with copies, ms", "processor, ms",
          "processor / with copies"]


def text_of(value, form="{:.3g}"):
    return "-" if value is None else form.format(value)


def quotient(a, b):
    return None if a is None or not b else a / b


def floor_of(device, operation, element_type, shape):
    """Milliseconds that the matrix products take at the card's rate; None for other cards."""
    rate = next((rates[element_type] for card, rates in RATES.items() if card in device), None)
    if rate is None:
        return None
    length, heads, size = shape
    pairs = heads * length * (length + 1) / 2
    return 1e3 * OPERATIONS[operation] * size * pairs / rate


def measure(bundle, operation, element_type, shape, rounds, backend, longest):
    """The JSON of bench_gpu."""
    arguments = [operation, element_type, *shape, rounds]
    return json.loads(bundle.run("bench_gpu", arguments, backend, longest))


def row_of(operation, element_type, shape, gpu, processor):
    kernel, call = 1e3 * gpu["kernel"], 1e3 * gpu["call"]
    floor = floor_of(gpu["device"], operation, element_type, shape)
    target = TARGETS[operation, element_type] if floor is not None and shape == SHAPE else None
    on_processor = None if processor is None else 1e3 * processor["call"]
    numbers = [kernel, floor, quotient(kernel, floor), target, call, on_processor, quotient(on_processor, call)]
    return [f"{operation}, {element_type}", *map(text_of, numbers)]


def main():
    arguments = options(__doc__).parse_args()
    bundle = Bundle(arguments)
    emulated = arguments.backend == "emulator"
    shape, rounds = (TINY, 1) if emulated else (SHAPE, ROUNDS)
    measured, rows, failed = {}, [], False
    cases = [(operation, element_type) for element_type in TYPES for operation in OPERATIONS]
    # The card first, the processor with the time that is left.
    for backend, count in ((arguments.backend, rounds), (None, 1 if emulated else PROCESSOR_ROUNDS)):
        for case in cases:
            name = f"{', '.join(case)} on {backend or 'the processor'}"
            if bundle.left() < 1:
                print(f"{name}: no time left", flush=True)
                continue
            began = time.monotonic()
            try:
                measured[backend, case] = measure(bundle, *case, shape, count, backend, 60)
                print(f"{name}: {measured[backend, case]} ({time.monotonic() - began:.1f} s)", flush=True)
            except (Failed, ValueError) as error:
                failed = True
                print(f"{name}: failed: {error}", flush=True)
    for case in cases:
        gpu = measured.get((arguments.backend, case))
        if gpu is None:
            rows.append([", ".join(case)] + ["-"] * (len(HEADER) - 1))
        else:
            rows.append(row_of(*case, shape, gpu, measured.get((None, case))))
    append_table(arguments.table, HEADER, rows)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
