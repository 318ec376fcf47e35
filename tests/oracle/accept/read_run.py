# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a run folder without us: events.log by its description in docs/file-formats.md, run.h5 with h5py and xarray, and
compares the two. usage: read_run.py WRITE_SAMPLES (a program that makes the folder)"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import xarray

TYPES = ("started", "step", "validation", "probe", "snapshot", "control", "sample", "log", "state", "rewound")


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
    return value ^ 0xFFFFFFFF


class Payload:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else values

    def text(self):
        size = self.take("I")
        self.at += size
        return self.data[self.at - size : self.at].decode("utf-8")

    def array(self, type_name):
        count = self.take("I")
        values = np.frombuffer(self.data, type_name, count, self.at)
        self.at += values.nbytes
        return values


def frames(data):
    assert data[:8] == b"HSEVENTS" and struct.unpack_from("<II", data, 8) == (1, crc32c(data[:12]))
    at = 16
    while at < len(data):
        marker, kind, zero, length, checksum = struct.unpack_from("<IHHII", data, at)
        assert marker == 0xFF4E5648 and zero == 0
        payload = data[at + 16 : at + 16 + length]
        if kind == 2:  # enough of them to check the checksum, in slow Python
            assert checksum == crc32c(data[at + 4 : at + 12] + payload)
        yield TYPES[kind - 1], Payload(payload)
        at += 16 + length


def read_journal(path):
    run = {"steps": [], "validations": [], "probes": []}
    for kind, payload in frames(path.read_bytes()):
        payload.take("d")  # the time
        if kind == "started":
            payload.take("q")
            run["job"] = payload.text()
        elif kind == "step":
            run["steps"].append(payload.take("qqdddddd"))
        elif kind == "validation":
            run["validations"].append(payload.take("qdqd"))
        elif kind == "probe":
            step, _ = payload.take("qd")
            indicators = {}
            for _ in range(payload.take("I")):
                name = payload.text()
                indicators[name] = payload.array("<f8")
            size = payload.take("q")
            run["probes"].append((step, indicators, size, payload.array("<f2")))
        elif kind == "log":
            run["log"] = (payload.take("Bq"), payload.text())
    return run


def check_h5py(path, journal):
    with h5py.File(path) as file:
        assert file.attrs["format"] == "headscope-run" and file.attrs["format_version"] == 2
        assert file.attrs["state"] == "finished"
        assert file["job"][()].decode() == journal["job"]
        steps = np.array(journal["steps"])
        for column, name in enumerate(("step", "tokens", "loss", "learning_rate", "gradient_norm", "tokens_per_second",
                                       "seconds", "memory")):
            assert np.array_equal(file[f"training/{name}"][:], steps[:, column]), name
        assert np.allclose(file["training/perplexity"][:], np.exp(steps[:, 2]), rtol=1e-15)
        validations = np.array(journal["validations"])
        assert np.allclose(file["validation/perplexity"][:], np.exp(validations[:, 1]), rtol=1e-15)
        assert np.array_equal(file["validation/loss"][:], validations[:, 1])
        sites, heads = file["sites/layer"].shape[0], int(file["sites/heads"][:].max())
        for p, (step, indicators, size, thumbnails) in enumerate(journal["probes"]):
            assert file["probe/step"][p] == step
            for name, values in indicators.items():
                stored = file[f"probe/{name}"][p]
                assert np.array_equal(stored.ravel(), values, equal_nan=True), name
                assert stored.shape[0] == sites and (stored.ndim == 1 or stored.shape[1] == heads)
            stored = file["probe/thumbnails"][p]
            assert stored.shape == (sites, heads, size, size) and stored.dtype == np.float32
            assert np.array_equal(stored.ravel(), thumbnails, equal_nan=True)
        assert file["log/text"][0].decode() == journal["log"][1]
        assert file["samples/text"][0].decode() == " beginning…"
        assert file["controls/action"][0] == b"learning_rate"

        def labelled(name, item):
            if isinstance(item, h5py.Dataset) and not item.is_scale:
                assert all(len(dimension) == 1 for dimension in item.dims), name

        file.visititems(labelled)


def check_xarray(path, journal, engine):
    training = xarray.open_dataset(path, group="training", engine=engine)
    assert training.loss.dims == ("step",) and training.loss.sel(step=3) == journal["steps"][2][2]
    assert training.loss.attrs["units"] == "nat"
    probe = xarray.open_dataset(path, group="probe", engine=engine)
    assert probe.entropy.dims == ("step", "site", "head") and probe.head_diversity.dims == ("step", "site")
    assert probe.local_focus.dims == ("step", "site", "head", "local_distance")
    step, indicators, _, _ = journal["probes"][2]
    assert np.array_equal(probe.entropy.sel(step=step).values.ravel(), indicators["entropy"], equal_nan=True)
    log = xarray.open_dataset(path, group="log", engine=engine)
    assert log.text.dims == ("line",) and all(isinstance(text, str) for text in log.text.values)
    for group in ("/", "training", "probe", "log", "sites"):
        xarray.open_dataset(path, group=group, engine=engine).load()


def check_items(path):
    """Items of an evaluation file, and the text of each, as docs/evaluation.md says."""
    with h5py.File(path) as file:
        assert file.attrs["format_version"] == 8 and set(file["results/shots"][()]) == {0, 5}
        items = file["items"]
        names = file["models/name"].asstr()[()]
        assert items["texts"].compression == "gzip" and items["texts"].dtype == "int8"
        seen = 0
        for row, task in enumerate(items["task"].asstr()[()]):
            start, size = items["text_start"][row], items["text_bytes"][row]
            text = json.loads(items["texts"][start:start + size].tobytes().decode())
            assert names[items["model"][row]] in ("standard", "mlp-uniform", "mlp-even") and items["length"][row] == 2048
            assert bool(items["right"][row]) == (items["chosen"][row] == items["gold"][row] if task == "arc_easy" else
                                                 items["model"][row] == 0)
            if task == "arc_easy":
                assert [option["continuation"] for option in text["requests"]] == [" où", " no"]
                assert text["requests"][0]["context"] == f"Question: {items['item'][row]}?\nAnswer:"
            else:
                assert text["generated"] == " Scope" and items["gold"][row] == -1
            seen += 1
        assert seen == 21 and items["texts"].dims[0].label == "byte" and items["model"].dims[0].label == "row"
    for engine in ("h5netcdf", "netcdf4"):
        with xarray.open_dataset(path, group="items", engine=engine) as table:
            table.load()
            assert table["task"].dims == ("row",) and table["texts"].dims == ("byte",) and len(table["row"]) == 21


def main():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.argv[1], folder], check=True)
        for name in ("first", "second"):
            run = pathlib.Path(folder) / name
            journal = read_journal(run / "events.log")
            assert len(journal["steps"]) >= 300 and len(journal["probes"]) >= 7
            check_h5py(run / "run.h5", journal)
            for engine in ("h5netcdf", "netcdf4"):
                check_xarray(run / "run.h5", journal, engine)
        with h5py.File(pathlib.Path(folder) / "sample.evaluation.h5") as file:
            assert file.attrs["format"] == "headscope-evaluation" and file["results/value"].shape[0] > 100
        check_items(pathlib.Path(folder) / "tasks.evaluation.h5")
    print("run folders read the same by h5py, xarray and by their description")


if __name__ == "__main__":
    main()
