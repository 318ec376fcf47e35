# SPDX-License-Identifier: GPL-3.0-or-later
"""Analysis files that our writer never made: changed through h5py, bit by bit, cut, and of other formats."""

import os
import random
import shutil

import h5py
import numpy as np

from harness import Place, check

FIGURES = ("indicators", "radar", "logits", "thumbnails", "attention")
ENTROPY = "/indicators/entropy"


def replace(file, path, **arguments):
    del file[path]
    return file.create_dataset(path, **arguments)


def chunked(file, path, dims, chunk, dtype="f8", **more):
    """A dataset of any claimed size that holds no data."""
    del file[path]
    space = h5py.h5s.create_simple(dims, (h5py.h5s.UNLIMITED,) * len(dims))
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk(chunk)
    for name, value in more.items():
        getattr(plist, name)(*value)
    h5py.h5d.create(file.id, path.encode(), h5py.h5t.py_create(np.dtype(dtype)), space, plist)


def external(file, path, name="/etc/passwd"):
    shape, dtype = file[path].shape, file[path].dtype
    replace(file, path, shape=shape, dtype=dtype, external=[(name, 0, h5py.h5f.UNLIMITED)])


def virtual(file, path):
    shape, dtype = file[path].shape, file[path].dtype
    layout = h5py.VirtualLayout(shape=shape, dtype=dtype)
    layout[...] = h5py.VirtualSource("/etc/passwd", "x", shape=shape)
    del file[path]
    file.create_virtual_dataset(path, layout)


def attribute(name, value, path="/"):
    def change(file):
        del file[path].attrs[name]
        if value is not None:
            file[path].attrs[name] = value
    return change


def fill(path, value):
    def change(file):
        file[path][...] = value
    return change


def link(path, target):
    def change(file):
        if path in file:
            del file[path]
        file[path] = target
    return change


def resized(path, shape, dtype=None, value=0):
    return lambda file: replace(file, path, data=np.full(shape, value, dtype or file[path].dtype))


def committed(file):
    file["/type"] = np.dtype("f8")
    shape = file[ENTROPY].shape
    replace(file, ENTROPY, shape=shape, dtype=file["/type"])


def deep_groups(file):
    del file["/indicators"]
    file["/indicators"] = file["/"]


def many_sites(file):
    for name, dataset in dict(file["/sites"]).items():
        if dataset.ndim == 1:
            data = np.resize(dataset[...], 3_000_000)
            replace(file, "/sites/" + name, data=data, chunks=(100_000,), compression="gzip")


def bomb(path, count, dtype):
    """Zeros that compress a thousandfold."""
    def change(file):
        shape = file[path].shape
        dims = (*shape[:-1], count)
        replace(file, path, shape=dims, dtype=dtype or file[path].dtype, chunks=(*([1] * (len(dims) - 1)), min(count, 1 << 22)),
                compression="gzip", fillvalue=0)
        file[path][...] = np.zeros(dims, file[path].dtype)
    return change


MUST = [
    ("format", attribute("format", None)), ("another format", attribute("format", "headscope-run")),
    ("format is a number", attribute("format", 5)), ("version 3", attribute("format_version", np.int32(3))),
    ("version is a text", attribute("format_version", "1")), ("version is an array", attribute("format_version", np.ones(3, "i4"))),
    ("no version", attribute("format_version", None)), ("no seed", attribute("seed", None)),
    ("no complete", attribute("complete", None)), ("complete is a text", attribute("complete", "1")),
    ("no settings", attribute("settings", None)), ("settings are several", attribute("settings", ["a", "b"])),
    ("no model name", attribute("model_name", None)), ("no tokens", lambda f: f.__delitem__("/tokens")),
    ("no sites", lambda f: f.__delitem__("/sites")), ("no model", lambda f: f.__delitem__("/model")),
    ("no logits", lambda f: f.__delitem__("/logits")), ("tokens are a soft link", link("/tokens", h5py.SoftLink("/model"))),
    ("tokens are an external link", link("/tokens", h5py.ExternalLink("/etc/passwd", "/"))),
    ("a link to itself", link("/tokens", h5py.SoftLink("/tokens"))), ("links in a ring", lambda f: (
        link("/tokens", h5py.SoftLink("/ring"))(f), link("/ring", h5py.SoftLink("/tokens"))(f))),
    ("ids are external", lambda f: external(f, "/tokens/ids")), ("ids are virtual", lambda f: virtual(f, "/tokens/ids")),
    ("ids are floats", resized("/tokens/ids", (1, 12), "f4")), ("ids are big-endian", resized("/tokens/ids", (1, 12), ">i4")),
    ("ids of rank 1", resized("/tokens/ids", 12)), ("ids of rank 3", resized("/tokens/ids", (1, 12, 1))),
    ("no ids", resized("/tokens/ids", (1, 0))), ("ids of 2^40", lambda f: chunked(f, "/tokens/ids", (1, 2**40), (1, 1000), "i4")),
    ("ids of 2^31 - 1", lambda f: chunked(f, "/tokens/ids", (1, 2**31 - 1), (1, 1000), "i4")),
    ("ids of 2^62", lambda f: chunked(f, "/tokens/ids", (2**31, 2**31), (1, 1000), "i4")),
    ("ids of a group", lambda f: (f.__delitem__("/tokens/ids"), f.create_group("/tokens/ids"))),
    ("lengths too long", fill("/tokens/length", 2**30)), ("lengths below 0", fill("/tokens/length", -1)),
    ("lengths of 0", fill("/tokens/length", 0)), ("lengths are many", resized("/tokens/length", (3,), value=12)),
    ("pieces of variable length", lambda f: replace(f, "/tokens/piece", shape=f["/tokens/ids"].shape, dtype=h5py.string_dtype())),
    ("pieces are numbers", resized("/tokens/piece", (1, 12), "i4")), ("text is compound", lambda f: replace(
        f, "/tokens/text", data=np.zeros(1, [("a", "i4"), ("b", "S4")]))),
    ("text of references", lambda f: replace(f, "/tokens/text", shape=(1,), dtype=h5py.ref_dtype)),
    ("layers below 0", fill("/sites/layer", -1)), ("layers beyond", fill("/sites/layer", 99)),
    ("heads of 2^31 - 1", fill("/sites/heads", 2**31 - 1)), ("no heads", fill("/sites/heads", 0)),
    ("heads below 0", fill("/sites/heads", -5)), ("keys below 0", fill("/sites/key_size", -1)),
    ("a stream of slashes", lambda f: replace(f, "/sites/key_stream", data=np.array([b"../.."] * 4))),
    ("a stream that is not there", lambda f: replace(f, "/sites/key_stream", data=np.array([b"other"] * 4))),
    ("three million sites", many_sites), ("a row step of 0", attribute("row_step", np.int64(0), "/logits/counts")),
    ("no row step", attribute("row_step", None, "/logits/counts")), ("distances of NaN", fill("/local_distance", np.nan)),
    ("distances below 0", fill("/local_distance", -1)), ("distances of 1e300", fill("/local_distance", 1e300)),
    ("a bomb of ids", bomb("/tokens/ids", 200_000_000, "i4")), ("a bomb of text", lambda f: replace(
        f, "/tokens/text", data=np.zeros(1, "S2000000"), chunks=(1,), compression="gzip") and replace(
        f, "/model/mixer", shape=(400,), dtype="S1000000", chunks=(8,), compression="gzip")),
]

# Opens, perhaps, but the figure that needs it is refused, and by info what is no dataset as it must be: (name, change, figure that must be refused or "").
MAY = [
    ("complete = 0", attribute("complete", np.int32(0)), ""), ("complete = 7", attribute("complete", np.int32(7)), ""),
    ("entropy is external", lambda f: external(f, ENTROPY), "indicators"), ("entropy is virtual", lambda f: virtual(f, ENTROPY), "indicators"),
    ("entropy is a link", link(ENTROPY, h5py.SoftLink("/indicators/sink")), "indicators"),
    ("entropy is elsewhere", link(ENTROPY, h5py.ExternalLink("other.h5", "/x")), "indicators"),
    ("entropy is a hard link", lambda f: (f.__delitem__(ENTROPY), f.__setitem__(ENTROPY, f["/indicators/sink"])), ""),
    ("entropy is absent", lambda f: f.__delitem__(ENTROPY), "indicators"), ("entropy is a group", lambda f: (
        f.__delitem__(ENTROPY), f.create_group(ENTROPY)), "indicators"),
    ("entropy is float32", resized(ENTROPY, (1, 4, 8), "f4"), "indicators"), ("entropy is wide", resized(ENTROPY, (1, 4, 9)), "indicators"),
    ("entropy is huge", lambda f: chunked(f, ENTROPY, (2**31 - 1,) * 3, (1, 4, 8)), "indicators"),
    ("entropy has huge chunks", lambda f: chunked(f, ENTROPY, (1, 4, 8), (1, 40000, 40000)), "indicators"),
    ("entropy is empty", lambda f: replace(f, ENTROPY, data=h5py.Empty("f8")), "indicators"),
    ("entropy is scale-offset", lambda f: chunked(f, ENTROPY, (1, 4, 8), (1, 4, 8), set_scaleoffset=(0, 2)), "indicators"),
    ("an unknown filter", lambda f: chunked(f, ENTROPY, (1, 4, 8), (1, 4, 8), set_filter=(32015, 1, (3,))), "indicators"),
    ("NaN", fill(ENTROPY, np.nan), ""), ("infinity", fill(ENTROPY, np.inf), ""), ("1e308", fill(ENTROPY, 1e308), ""),
    ("committed type", committed, ""), ("a group in itself", deep_groups, ""), ("thumbnails of NaN", fill("/thumbnails/mean", np.nan), ""),
    ("thumbnails of infinity", fill("/thumbnails/mean", np.inf), ""), ("thumbnails below 0", fill("/thumbnails/mean", -5), ""),
    ("counts are most", fill("/logits/counts", 2**64 - 1), ""), ("no counts", fill("/logits/counts", 0), ""),
    ("edges of NaN", fill("/logits/edges", np.nan), ""), ("edges go down", fill("/logits/edges", 0), ""),
    ("minimum above maximum", lambda f: (fill("/logits/minimum", 1e300)(f), fill("/logits/maximum", -1e300)(f)), ""),
    ("infinite scores", lambda f: (fill("/logits/minimum", -np.inf)(f), fill("/logits/maximum", np.inf)(f)), ""),
    ("offsets beyond the text", fill("/tokens/offset", 2**31 - 1), ""), ("offsets below 0", fill("/tokens/offset", -7), ""),
    ("ids below 0", fill("/tokens/ids", -2**31), ""), ("pieces that escape", lambda f: replace(
        f, "/tokens/piece", data=np.full(f["/tokens/ids"].shape, b"\x1b[31m\n\xff")), ""),
    ("pieces of no text", lambda f: replace(f, "/tokens/piece", data=np.full(f["/tokens/ids"].shape, b"\xff\xfe")), ""),
    ("a name that escapes", attribute("model_name", "evil\x1b[2J\nname"), ""), ("a long name", attribute("model_name", "n" * 60000), ""),
    ("positions below 0", attribute("max_positions", np.int64(-(2**62))), ""), ("two sites of one name", fill("/sites/layer", 0), ""),
    ("no matrix", fill("/sites/has_matrix", 0), ""), ("none measured", fill("/sites/measured", 0), ""),
    ("not done", fill("/sites/done", 0), ""), ("map type", attribute("map_type", "float64"), "radar"),
    ("scale of NaN", attribute("scale", np.nan, "/maps/0/0"), "attention"), ("no scale", attribute("scale", None, "/maps/0/0"), "attention"),
    ("a window below 0", attribute("window_left", np.int64(-5), "/maps/0/0"), ""), ("a window of 2^62", attribute("window_left", np.int64(2**62), "/maps/0/0"), "attention"),
    ("keys begin late", attribute("key_begin", np.int64(1000), "/maps/0/0"), ""), ("keys are long", attribute("key_length", np.int64(2**39), "/maps/0/0"), ""),
    ("queries are long", attribute("query_length", np.int64(2**39), "/maps/0/0"), ""), ("an offset of 2^39", attribute("query_offset", np.int64(2**39), "/maps/0/0"), ""),
    ("first keys below 0", attribute("first_keys", np.int64(-3), "/maps/0/0"), ""), ("blocks of 1", attribute("block_size", np.int64(1), "/maps/0/0"), "attention"),
    ("a normaliser", attribute("normaliser", "frob", "/maps/0/0"), "attention"), ("a table", lambda f: f.create_dataset("/maps/0/0/distance_bias", data=np.zeros((8, 3), "f4")), ""),
    ("a table of other heads", lambda f: f.create_dataset("/maps/0/0/distance_bias", data=np.zeros((9, 3), "f4")), "attention"),
    ("queries of NaN", fill("/maps/0/0/query", np.nan), ""), ("constants of -inf", fill("/maps/0/0/row_constant", -np.inf), ""),
    ("queries are absent", lambda f: f.__delitem__("/maps/0/0/query"), "attention"), ("three key heads", fill("/sites/key_value_heads", 3), ""),
    ("unknown things beside", lambda f: f.create_dataset("/indicators/frob", data=np.zeros(3)), ""),
]


def export(place, figure):
    extra = ["--layer", "0", "--head", "0"] if figure == "attention" else []
    return ["export", place / "a.headscope.h5", "--figure", figure, "-o", place / "x.csv", *extra]


def run(judge, sample, quick):
    random.seed(22)
    with Place() as home:
        base = home / "a.headscope.h5"
        made = judge.run(["analyze", sample, "--text", "In the beginning God created the heaven", "--record",
                          "maps,attention,states,logits", "-o", base])
        assert made.status == 0, made.err
        for name, change in MUST[::6] if quick else MUST:
            with changed(base, change) as place:
                for arguments in (["info", place / "a.headscope.h5"], export(place, "indicators")):
                    check(judge, f"analysis, {name}, {arguments[0]}", place, arguments, parts=["a.headscope.h5"])
        for name, change, figure in MAY[::6] if quick else MAY:
            with changed(base, change) as place:
                check(judge, f"analysis, {name}, info", place, ["info", place / "a.headscope.h5"],
                      must_refuse=figure == "indicators")
                for other in FIGURES:
                    check(judge, f"analysis, {name}, {other}", place, export(place, other), outputs=["x.csv"],
                          must_refuse=other == figure)
        bits(judge, base, 20 if quick else 400)
        cuts(judge, base, 5 if quick else 60)
        other_files(judge, base)


class changed(Place):
    def __init__(self, base, change):
        self.base, self.change = base, change

    def __enter__(self):
        super().__enter__()
        shutil.copy(self.base, self / "a.headscope.h5")
        with h5py.File(self / "a.headscope.h5", "r+", locking=False) as file:
            self.change(file)
        return self


def bits(judge, base, count):
    """Bits of the structures: most of the file is numbers, where a bit changes only a number."""
    whole = base.read_bytes()
    marks = [at for mark in (b"TREE", b"HEAP", b"SNOD", b"OHDR", b"GCOL") for at in places(whole, mark)] + [0]
    for number in range(count):
        data = bytearray(whole)
        for _ in range(1 + number % 3):
            at = min(len(data) - 1, random.choice(marks) + random.randrange(600))
            if number % 4 == 3:
                data[at] = random.choice((0, 0xFF, 0x7F, 0x80))
            else:
                data[at] ^= 1 << random.randrange(8)
        with Place() as place:
            (place / "a.headscope.h5").write_bytes(data)
            for arguments in (["info", place / "a.headscope.h5"], export(place, FIGURES[number % 5])):
                check(judge, f"analysis, bits {number}, {arguments[0]}", place, arguments, outputs=["x.csv"], must_refuse=False)


def places(data, mark):
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + 1)


def cuts(judge, base, count):
    whole = base.read_bytes()
    for number in range(count):
        size = number if number < 10 else random.randrange(len(whole))
        with Place() as place:
            (place / "a.headscope.h5").write_bytes(whole[:size])
            check(judge, f"analysis cut at {size}", place, ["info", place / "a.headscope.h5"], parts=["a.headscope.h5"])


def other_files(judge, base):
    for name, content in (("empty", b""), ("text", b"hello"), ("signature only", b"\x89HDF\r\n\x1a\n"),
                          ("zeros", b"\0" * 5000), ("signature and zeros", b"\x89HDF\r\n\x1a\n" + b"\0" * 5000),
                          ("signature and ones", b"\x89HDF\r\n\x1a\n" + b"\xff" * 5000)):
        with Place() as place:
            (place / "a.headscope.h5").write_bytes(content)
            for arguments in (["info", place / "a.headscope.h5"], export(place, "radar")):
                check(judge, f"analysis of {name}", place, arguments, parts=["a.headscope.h5"], seconds=2)
    with Place() as place:
        (place / "a.headscope.h5").write_bytes(b"\0" * 512 + base.read_bytes())
        check(judge, "analysis behind a user block", place, ["info", place / "a.headscope.h5"], must_refuse=False)
    with Place() as place:
        path = place / "a.headscope.h5"
        with h5py.File(path, "w") as file:
            file["x"] = 1
        check(judge, "another HDF5 file", place, ["info", path], parts=["another HDF5 file"])
    with Place() as place:
        path = place / "a.headscope.h5"
        shutil.copy(base, path)
        os.truncate(path, 1 << 40)
        check(judge, "an analysis with a terabyte of holes", place, ["info", path], seconds=2)
    with changed(base, lambda f: None) as place:
        with h5py.File(place / "a.headscope.h5", "r+", locking=True):
            check(judge, "an analysis that is being written", place, ["info", place / "a.headscope.h5"], must_refuse=False)
