#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""GGUF's block types as the package gguf 0.19.0 expands them: gguf_blocks.json.

    pip install gguf==0.19.0
    python3 gguf_blocks.py

For each type three rows of blocks, whose bytes come from splitmix64 with the type's number as seed and scales made
finite (finite_scales); stored are the SHA-256 of the expanded float32 and the first numbers of each row as bits. For the
types with 8-bit scales every scale is there.
"""
import hashlib
import json
import pathlib

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES

TYPES = ("F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S "
         "IQ4_NL IQ4_XS TQ1_0 TQ2_0 MXFP4 NVFP4").split()
ROWS = 3
BLOCKS = 86  # of a row
MASK = (1 << 64) - 1
# Offsets in a block of bytes whose bit 6 is the highest of a float's exponent.
HIGH_BYTES = {"F32": [3], "F16": [1], "BF16": [1], "Q4_1": [1, 3], "Q5_1": [1, 3], "Q2_K": [81, 83], "Q3_K": [109],
              "Q4_K": [1, 3], "Q5_K": [1, 3], "Q6_K": [209], "IQ1_M": [55], "TQ1_0": [53], "TQ2_0": [65], "MXFP4": [],
              "NVFP4": []}


def splitmix64(number):
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & MASK
    return number ^ (number >> 31)


def random_bytes(seed, size):
    words = [splitmix64((seed << 32) + i + 1) for i in range((size + 7) // 8)]
    return np.frombuffer(b"".join(word.to_bytes(8, "little") for word in words), dtype=np.uint8)[:size].copy()


def finite_scales(name, blocks):
    """Of [blocks, bytes]: floats below 2; the first byte of MXFP4 and NVFP4 counts up, to 254."""
    for byte in HIGH_BYTES.get(name, [1]):
        blocks[:, byte] &= 0xBF
    if name == "MXFP4":
        blocks[:, 0] = np.arange(len(blocks)) % 255
    if name == "NVFP4":
        blocks[:, 0] = np.arange(len(blocks)) % 256


def main():
    golden = {}
    for name in TYPES:
        kind = Type[name]
        _, size = GGML_QUANT_SIZES[kind]
        blocks = random_bytes(int(kind), ROWS * BLOCKS * size).reshape(ROWS * BLOCKS, size)
        finite_scales(name, blocks)
        numbers = quants.dequantize(blocks.reshape(ROWS, -1), kind)
        assert numbers.shape == (ROWS, BLOCKS * GGML_QUANT_SIZES[kind][0]) and np.isfinite(numbers).all() or name == "MXFP4"
        bits = np.ascontiguousarray(numbers, dtype=np.float32)
        golden[name] = {"sha256": hashlib.sha256(bits.tobytes()).hexdigest(),
                        "first": [["%08x" % bit for bit in row[:4].view(np.uint32)] for row in bits]}
    halves = np.arange(1 << 16, dtype=np.uint16)
    halves = halves[(halves & 0x7C00) != 0x7C00]
    golden["finite_halves"] = hashlib.sha256(halves.view(np.float16).astype(np.float32).tobytes()).hexdigest()
    path = pathlib.Path(__file__).parent / "data/gguf_blocks.json"
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
