# SPDX-License-Identifier: GPL-3.0-or-later
"""Weight files that lie: headers, types, shapes, offsets, cuts."""

import json
import os
import random
import struct

from harness import Place, check, link_model

TEXT = "In the beginning God created the heaven and the earth."


def file_of(header, data=b"", length=None):
    if isinstance(header, (dict, list)):
        header = json.dumps(header, separators=(",", ":"))
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + data


def entry(dtype="F32", shape=(1,), offsets=(0, 4), **more):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}


def raw(shape, offsets="[0,4]", dtype='"F32"'):
    return '{"a":{"dtype":%s,"shape":%s,"data_offsets":%s}}' % (dtype, shape, offsets)


def headers():
    """(name, bytes of a file, parts of the message)."""
    four = b"\0" * 4
    yield "empty", b"", ["empty"]
    for size in range(1, 10):
        yield f"{size} bytes", file_of("{}")[:size], []
    for length in (0, 1, 3, 99_999_999, 100_000_000, 100_000_001, 2**31, 2**32, 2**32 + 2, 2**63, 2**64 - 8, 2**64 - 1):
        yield f"length {length}", file_of("{}", length=length), ["model.safetensors"]
    for text in ("", "[]", "12", '"x"', "null", "true", "{", "}", "{}{}", "{},", "{}x", "{a:1}", "{'a':1}", '{"a":}',
                 '{"a":1,}', '{"a"}', "\ufeff{}", "//\n{}", "/**/{}", "{}\0", "\0{}", '{"a":NaN}', '{"a":Infinity}'):
        yield f"header {text!r}", file_of(text), ["model.safetensors"]
    yield "invalid UTF-8 key", file_of(b'{"\xff":1}'), ["UTF-8"]
    yield "lone surrogate", file_of(b'{"\\ud800":1}'), []
    yield "overlong", file_of(b'{"\xc0\x80":1}'), ["UTF-8"]
    yield "UTF-16", file_of("{}".encode("utf-16")), []
    for value in ("1", "[]", "null", '"x"', "{}", '{"dtype":"F32"}', '{"dtype":"F32","shape":[1]}',
                  '{"shape":[1],"data_offsets":[0,4]}', '["F32",[1],[0,4]]'):
        yield f"entry {value}", file_of('{"a":%s}' % value, four), ['"a"']
    yield "unknown field", file_of({"a": entry(extra=1)}, four), ["extra"]
    yield "key twice", file_of('{"a":%s,"a":%s}' % (json.dumps(entry()), json.dumps(entry())), four), ["again"]
    yield "key twice by escape", file_of('{"a":%s,"\\u0061":%s}' % (json.dumps(entry()), json.dumps(entry())), four), []
    yield "field twice", file_of('{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}', four), []
    for value in ("[]", "1", '"x"', "null", '{"a":1}', '{"a":null}', '{"a":{}}', '{"a":[]}', '{"a":"x","a":"y"}'):
        yield f"metadata {value}", file_of('{"__metadata__":%s}' % value), ["__metadata__"]
    for dtype in ('"F31"', '"f32"', '"FLOAT"', '""', "1", "null", '["F32"]', '"F32\\u0000"', '"\\u001b[31m"', '"' +
                  "x" * 5000 + '"'):
        yield f"dtype {dtype[:20]}", file_of(raw("[1]", dtype=dtype), four), ['"a"']
    for shape in ("1", '"1"', "{}", "null", "true", "[-1]", "[-1,-1]", "[1.0]", "[1e0]", '["1"]', "[[1]]", "[true]",
                  "[null]", "[2]", "[0]", "[18446744073709551615]", "[18446744073709551616]", "[9223372036854775808]",
                  "[4294967296,4294967296]", "[4611686018427387904,4]", "[2305843009213693953]", "[1e400]",
                  "[-9223372036854775808]", "[" + "1," * 64 + "1]", "[" * 63 + "]" * 63, "[" * 100000,
                  "[" + "9" * 5000 + "]"):
        yield f"shape {shape[:30]}", file_of(raw(shape), four), []
    for offsets in ("4", "[]", "[0]", "[0,4,8]", "[4,0]", "[0,5]", "[1,5]", "[0,-4]", "[-4,0]", "[0,4.0]", "[0,4e0]",
                    '["0","4"]', "[null,4]", "[0,18446744073709551615]", "[18446744073709551612,18446744073709551616]",
                    "[18446744073709551611,18446744073709551615]", "[9223372036854775807,9223372036854775811]", "{}",
                    "[[0,4]]", "[0,-0]"):
        yield f"offsets {offsets}", file_of(raw("[1]", offsets), four), ['"a"'] if "6]" not in offsets else []
    for dtype, shape, size in (("F4", [3], 1), ("F4", [1], 0), ("F6_E2M3", [3], 2), ("F64", [1], 4), ("U8", [5], 4)):
        yield f"{dtype} {shape}", file_of({"a": entry(dtype, shape, (0, size))}, b"\0" * size), ['"a"']
    two = lambda a, b: {"a": entry("U8", (4,), a), "b": entry("U8", (4,), b)}
    for a, b, size in (((0, 4), (0, 4), 4), ((0, 4), (3, 7), 7), ((0, 4), (5, 9), 9), ((1, 5), (5, 9), 9),
                       ((0, 4), (4, 8), 9), ((0, 4), (4, 8), 7), ((4, 8), (8, 12), 12)):
        yield f"cover {a} {b} of {size}", file_of(two(a, b), b"\0" * size), []
    yield "only a byte of data", file_of("{}", b"x"), []
    yield "zero-size hole", file_of({"a": entry("U8", (0,), (2, 2))}, b"xx"), []
    yield "deep nesting", file_of('{"a":' * 100000), []
    yield "names that escape", file_of({"\x1b[2J\n\u202e": entry("F33")}, four), ["\\x1B[2J\\x0A\\u{202E}"]


def others():
    for name, start, word in (
            ("GGUF", b"GGUF\3\0\0\0", "cut short"), ("LFS", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "LFS"),
            ("HTML", b"<!DOCTYPE html><html><body>login</body>", "HTML"), ("gzip", b"\x1f\x8b\x08" + b"\0" * 50, "gzip"),
            ("tar", b"x" * 257 + b"ustar\0" + b"x" * 400, "tar"), ("HDF5", b"\x89HDF\r\n\x1a\n" + b"\0" * 100, "HDF5"),
            ("NumPy", b"\x93NUMPY\1\0" + b"\0" * 50, "NumPy"), ("JSON", b'{"a": 1}', "JSON"), ("text", b"hello\n" * 9, "")):
        yield name, start, [word] if word else []


def run(judge, sample, quick):
    random.seed(20)
    cases = [*headers(), *others()]
    whole = (sample / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", whole[:8])[0]
    for cut in (7, 8, 9, 100, 8 + length - 1, 8 + length, len(whole) // 2, len(whole) - 1):
        cases.append((f"cut at {cut}", whole[:cut], ["model.safetensors"]))
    cases.append(("a byte more", whole + b"x", []))
    for _ in range(10 if quick else 150):
        at = random.randrange(8 + length)
        changed = bytearray(whole)
        changed[at] ^= 1 << random.randrange(8)
        cases.append((f"bit of byte {at}", bytes(changed), None))
    for name, content, parts in cases:
        with Place() as place:
            model = link_model(place, sample, ["model.safetensors"])
            (model / "model.safetensors").write_bytes(content)
            check(judge, "weights, " + name, place, ["analyze", model, "--text", TEXT, "-o", place / "x.headscope.h5"],
                  outputs=["x.headscope.h5"], must_refuse=parts is not None, parts=parts or (),
                  seconds=20 if parts is None else 2)
    large(judge, sample)


def write_apart(path, content):
    """In a process of its own: a child's peak of memory includes what its parent held when it was made."""
    child = os.fork()
    if child == 0:
        path.write_bytes(content())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def large(judge, sample):
    """Headers as long as the format allows, and files that claim a terabyte."""
    contents = {
        "spaces": lambda: file_of(b"{" + b" " * 99_999_990 + b"}"),
        "1.4 million tensors": lambda: file_of("{" + ",".join(
            '"%x":{"dtype":"U8","shape":[],"data_offsets":[%d,%d]}' % (i, i, i + 1) for i in range(1_400_000)) + "}"),
        "one long name": lambda: file_of('{"' + "n" * 90_000_000 + '":1}'),
        "brackets": lambda: file_of("[" * 90_000_000),
        "numbers": lambda: file_of('{"a":{"dtype":"U8","shape":[' + "0," * 40_000_000 + "0]"),
    }
    for what, content in contents.items():
        with Place() as place:
            write_apart(place / "model.safetensors", content)
            check(judge, "header of 100 MB, " + what, place, ["info", place / "model.safetensors", "--json"],
                  must_refuse=what != "spaces")
    with Place() as place:
        path = place / "model.safetensors"
        path.write_bytes(file_of({"a": entry("U8", (2**40,), (0, 2**40))}))
        os.truncate(path, path.stat().st_size + 2**40)
        check(judge, "a terabyte of holes", place, ["info", path], must_refuse=False, seconds=2)
