# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch files that lie: zip archives, the pickles in them, and what these say of storages and tensors."""

import io
import random
import struct
import zipfile

from harness import Place, check
from weights import write_apart

GLOBALS = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(value):
    data = value.encode()
    return b"\x8c" + bytes([len(data)]) + data if len(data) < 256 else b"X" + struct.pack("<I", len(data)) + data


def number(value):
    return b"M" + struct.pack("<H", value) if 0 <= value < 65536 else b"\x8a\x09" + value.to_bytes(9, "little", signed=True)


def numbers(values):
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(sizes=(6,), strides=(1,), offset=0, elements=6, key="0", kind="FloatStorage"):
    storage = b"(" + text("storage") + b"ctorch\n" + kind.encode() + b"\n" + text(key) + text("cpu") + number(elements) + b"tQ"
    return GLOBALS + b"(" + storage + number(offset) + numbers(sizes) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)RtR"


def state(entries, more=b""):
    return b"\x80\x04}" + b"".join(text(name) + value + b"s" for name, value in entries.items()) + more + b"."


def archive(pickle, storages=None, root="archive/", compression=zipfile.ZIP_STORED, **others):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        if pickle is not None:
            file.writestr(root + "data.pkl", pickle)
        for name, content in {"byteorder": "little", "version": "3\n", **others}.items():
            file.writestr(root + name, content)
        for name, content in (storages if storages is not None else {"0": b"\0" * 24}).items():
            file.writestr(root + "data/" + name, content)
    return made.getvalue()


def call(target, arguments=b")"):
    return state({"w": tensor()}, text("x") + b"c" + target + b"\n" + arguments + b"Rs")


MAGIC = b"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
HEAD = MAGIC + b"\x80\x02M\xe9\x03.\x80\x02}" + text("little_endian") + b"\x88s."


def legacy(pickle, keys=("0",), storages=struct.pack("<q", 6) + b"\0" * 24, head=HEAD):
    """As before version 1.6: pickles, then each storage's number of elements and these."""
    pickle = pickle.replace(b"tQ", b"NtQ")
    return head + pickle + b"\x80\x02](" + b"".join(map(text, keys)) + b"e." + storages


def old():
    """The same as small()."""
    good = state({"w": tensor()})
    whole = legacy(good)
    yield "a good one", whole, False, []
    yield "runs a program", legacy(call(b"os\nsystem", b"(" + text("touch /tmp/owned") + b"t")), True, ["system"]
    yield "big-endian", legacy(good, head=HEAD.replace(b"\x88s", b"\x89s")), True, ["big-endian"]
    yield "another protocol", legacy(good, head=HEAD.replace(b"M\xe9", b"M\xe8")), True, ["1001"]
    yield "no keys", legacy(good, ()), True, ["keys of 1 storages"]
    yield "another key", legacy(good, ("../../etc/passwd",)), True, ["each storage once"]
    yield "a key twice", legacy(good, ("0", "0")), True, ["each storage once"]
    for count in (0, 5, 7, -1, 2**62):
        yield f"a storage of {count}", legacy(good, storages=struct.pack("<q", count) + b"\0" * 24), True, ["as the pickle says"]
    for elements in (2**60, 2**62):
        yield f"a pickle that says {elements} elements", legacy(state({"w": tensor(elements=elements)})), True, []
    yield "bytes behind", whole + b"x", True, ["nothing behind"]
    for cut in (1, 4, 24, 25, 32, 33, len(whole) // 4, len(whole) // 2, len(HEAD), len(HEAD) + 1):
        yield f"cut at {cut}", whole[:-cut], True, []
    random.seed(32)
    for _ in range(100):
        changed = bytearray(whole)
        changed[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        yield "a bit changed", bytes(changed), False, []


def small():
    """(name, bytes, must be refused, parts of the message)."""
    good = state({"w": tensor()})
    yield "a good one", archive(good), False, []
    for what in (b"os\nsystem", b"builtins\neval", b"posix\nsystem", b"subprocess\nPopen", b"builtins\n__import__", b"torch\nload"):
        yield f"runs {what!r}", archive(call(what, b"(" + text("touch /tmp/owned") + b"t")), True, [what.split(b"\n")[1].decode()]
    yield "no pickle", archive(None), True, ["data.pkl"]
    yield "a program", archive(good, **{"code/__torch__.py": "x", "constants.pkl": b"\x80\x02)."}), True, ["TorchScript"]
    yield "big-endian", archive(good, byteorder="big"), True, ["little-endian"]
    yield "no byte order that is known", archive(good, byteorder="\x1b[31m"), True, ["byteorder"]
    for version in ("999\n", "abc", "0", ""):
        yield f"version {version!r}", archive(good, version=version), True, ["version"]
    yield "no storage", archive(good, {}), True, []
    yield "a storage cut", archive(good, {"0": b"\0" * 20}), True, []
    yield "storages packed", archive(good, compression=zipfile.ZIP_DEFLATED), True, []
    yield "a storage elsewhere", archive(state({"w": tensor(key="../../etc/passwd")})), True, []
    for what, lie in {"too long": {"sizes": (7,)}, "beyond the end": {"offset": 5}, "before the start": {"offset": -1},
                      "negative": {"sizes": (-6,)}, "backwards": {"strides": (-1,)}, "2^62": {"sizes": (2**62,)},
                      "products that wrap": {"sizes": (2**32, 2**32), "strides": (0, 0)}, "a terabyte of one number": {"sizes": (2**40,), "strides": (0,)},
                      "65 dimensions": {"sizes": (1,) * 65, "strides": (1,) * 65}, "ranks that differ": {"strides": (1, 1)},
                      "a storage of 2^62": {"elements": 2**62}, "an unknown type": {"kind": "MagicStorage"}}.items():
        # A view that the file does not justify is listed, and refused when it is read.
        yield f"a tensor, {what}", archive(state({"w": tensor(**lie)})), what not in ("a terabyte of one number",), []
    for what, pickle in {"empty": b"", "no protocol": b"}.", "protocol 9": b"\x80\x09}.", "no end": good[:-1], "an empty stack": b"\x80\x02.",
                         "a list": b"\x80\x02].", "an empty dictionary": b"\x80\x02}.", "no tensor": state({"a": number(1)}),
                         "itself": b"\x80\x02}q\0" + text("x") + b"h\0s.", "a memo that is not there": b"\x80\x02h\x07.",
                         "names that escape": state({"\x1b[2J": tensor()}) + b"x", "a name twice": state({"a": tensor()}, text("a") + tensor() + b"s"),
                         "a name of 100 kB": state({"n" * 100_000: tensor()}), "no UTF-8": b"\x80\x02}" + b"X\2\0\0\0\xff\xfe" + tensor() + b"s."}.items():
        yield f"pickle, {what}", archive(pickle), what != "names that escape", []
    whole = archive(good)
    for cut in (1, 4, 30, len(whole) // 2, len(whole) - 23, len(whole) - 1):
        yield f"cut at {cut}", whole[:cut], True, []
    yield "two archives", whole + whole, False, []
    for name in ("/etc/passwd", "../up/data.pkl", "a\\b", "x" * 60_000):
        yield f"a member {name[:20]}", archive(good, **{name: "x"}), False, []
    random.seed(31)
    for _ in range(200):
        changed = bytearray(whole)
        changed[random.randrange(len(whole))] ^= 1 << random.randrange(8)
        yield "a bit changed", bytes(changed), False, []


def large():
    """(name, function that makes the bytes, must be refused): much that takes few bytes to say."""
    def names(count):
        return lambda: archive(b"".join([b"\x80\x04}", text("w"), tensor(), b"q\x01s", *(
            b"(" + b"".join(text("%x" % i) + b"h\x01" for i in range(first, min(count, first + 1000))) + b"u"
            for first in range(0, count, 1000)), b"."]))

    yield "499 000 names of one tensor", names(499_000), False
    yield "a million names of one tensor", names(1_000_000), True
    yield "3.9 million names of one tensor", names(3_900_000), True
    yield "an old file of 300 MB of lists", lambda: legacy(b"\x80\x02" + b"]0" * 150_000_000 + b"}."), True
    yield "30 MB of lists", lambda: archive(b"\x80\x02" + b"]" * 30_000_000), True
    yield "30 MB of marks", lambda: archive(b"\x80\x02" + b"(" * 30_000_000), True
    yield "30 MB of dictionaries that are dropped", lambda: archive(b"\x80\x02" + b"}0" * 15_000_000 + b"}."), True
    yield "tuples in tuples, 30 million deep", lambda: archive(b"\x80\x02)" + b"\x85" * 30_000_000 + b"."), True
    yield "30 MB of numbers", lambda: archive(b"\x80\x02](" + b"K\x01" * 15_000_000 + b"e."), True
    yield "100 000 members", lambda: archive(state({"w": tensor()}), {str(i): b"\0" * 24 for i in range(100_000)}), False
    yield "a pickle of 200 MB that is packed", lambda: archive(b"\x80\x02" + b"]0" * 100_000_000, compression=zipfile.ZIP_DEFLATED), True


def run(judge, sample, quick):
    del sample
    for at, (name, content, must, parts) in enumerate([*small(), *(("old, " + name, *rest) for name, *rest in old())]):
        if quick and name.endswith("a bit changed") and at % 10:
            continue
        with Place() as place:
            (place / "model.pt").write_bytes(content)
            check(judge, "archive, " + name, place, ["info", place / "model.pt"], must_refuse=must, parts=parts,
                  seconds=2 if must else 20)
    for name, make, must in large():
        with Place() as place:
            write_apart(place / "model.pt", make)
            check(judge, "archive, " + name, place, ["info", place / "model.pt"], must_refuse=must)
