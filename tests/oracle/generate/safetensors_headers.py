#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the official library says of hundreds of mutated safetensors files.

    safetensors_headers.py OUTPUT_FOLDER       writes headers.json (tests/oracle/generate/data/checkpoint)

An entry is [file, accepted]: the file's bytes as the code points of a string, and whether safetensors.deserialize
takes it. tests/core/checkpoint/test_header.cpp compares: what the library refuses we must refuse; where we refuse more
is listed there.
"""

import json
import pathlib
import random
import struct
import sys

from safetensors import SafetensorError, deserialize

COUNT = 700
PIECES = ["{", "}", "[", "]", ",", ":", '"', "0", "1", "4", "8", "9", "-", ".0", "e0", "00", " ", "\n", "\t", "\0", "\x7f", "\\",
          "\\u0061", "\\ud800", "\\n", "null", "true", "{}", "[]", '"a"', '"x":1,', "\xff", "\xc3\xa9", "18446744073709551616",
          "18446744073709551615", "9223372036854775808", "4294967296", '"__metadata__":{},', '"__metadata__":null,',
          '"__metadata__":{"k":1},', '"a":', "F32", "F16", "F4", "F6_E2M3", "F8_E8M0", "BOOL", "C64", "I64", "f32", "F31"]


def entry(dtype, shape, begin, end):
    return '{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}' % (dtype, json.dumps(shape, separators=(",", ":")), begin, end)


def bases():
    yield "{}", 0
    yield '{"__metadata__":{"format":"pt","k":"v"}}', 0
    yield '{"a":%s}' % entry("F32", [1], 0, 4), 4
    yield '{"a":%s,"b":%s}' % (entry("U8", [2, 2], 0, 4), entry("F16", [2], 4, 8)), 8
    yield '{"b":%s,"a":%s}' % (entry("F16", [2], 4, 8), entry("U8", [2, 2], 0, 4)), 8
    yield '{"__metadata__":{"k":"v"},"a":%s,"e":%s}' % (entry("BF16", [2], 0, 4), entry("F64", [0, 3], 4, 4)), 4
    yield '{"a":%s}' % entry("F4", [2, 4], 0, 4), 4
    yield '{"s":%s}' % entry("I64", [], 0, 8), 8


def mutated(header, size):
    for _ in range(random.choice((1, 1, 1, 2))):
        at = random.randrange(len(header) + 1)
        piece = random.choice(PIECES)
        header = random.choice((header[:at] + piece + header[at:], header[:at] + piece + header[at + len(piece):],
                                header[:at] + header[at + random.randrange(1, 6):]))
    length = len(header) + (random.choice((-1, 1, 2**63, 8)) if random.random() < 0.05 else 0)
    size += random.choice((-1, 1, 4, -4)) if random.random() < 0.1 else 0
    return struct.pack("<Q", max(0, length)) + header.encode("latin-1") + b"\1" * max(0, size)


def accepted(file):
    try:
        deserialize(file)
        return True
    except SafetensorError:
        return False


def main():
    random.seed(7)
    found = {}
    for header, size in bases():
        for text in (header, " " + header, header + " ", header + "\n", "\n" + header, header + "\0"):
            file = struct.pack("<Q", len(text)) + text.encode("latin-1") + b"\1" * size
            found[file] = accepted(file)
    taken = 0
    while len(found) < COUNT:
        file = mutated(*random.choice(list(bases())))
        verdict = accepted(file)
        if file in found or (not verdict and len(found) - taken > COUNT // 2):  # half of them are taken
            continue
        found[file] = verdict
        taken += verdict
    path = pathlib.Path(sys.argv[1]) / "headers.json"
    lines = [json.dumps([file.decode("latin-1"), verdict]) for file, verdict in sorted(found.items())]
    path.write_text("[\n" + ",\n".join(lines) + "\n]\n")
    print(f"{len(found)} files, {sum(found.values())} accepted, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
