#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens every kind of HDF5 file that the program writes with all that people read them with: h5py, xarray by h5netcdf, by
netCDF4 and by its own choice, h5dump. All of them see the same numbers and texts; nothing is float16, on which netCDF-C
breaks its heap; maps that were recorded as integers are near those recorded as float32.

    every_reader.py HEADSCOPE CHECKPOINT WRITE_SAMPLES DATA_LINES
    every_reader.py FILE...        only these
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np
import xarray

import read_analysis

ENGINES = ("h5netcdf", "netcdf4", None)


def texts(values):
    return np.array([text.decode() if isinstance(text, bytes) else str(text) for text in values.ravel()], dtype=object)


def same(seen, stored):
    if h5py.check_string_dtype(stored.dtype):
        return np.array_equal(texts(np.asarray(seen)), texts(np.asarray(stored[()])))
    wanted = stored[()]
    if "scale_factor" in stored.attrs:
        wanted = wanted * stored.attrs["scale_factor"]
    return np.array_equal(np.asarray(seen).squeeze(), np.asarray(wanted).squeeze(), equal_nan=wanted.dtype.kind == "f")


def check(path):
    """Returns what is wrong."""
    problems, groups = [], ["/"]
    with h5py.File(path) as file:
        file.visititems(lambda name, item: groups.append(name) if isinstance(item, h5py.Group) else None)

        def of_known_type(name, item):
            if isinstance(item, h5py.Dataset) and item.dtype == np.float16:
                problems.append(f"{name}: float16")
            if isinstance(item, h5py.Dataset):
                item[()]

        file.visititems(of_known_type)
        for engine in () if problems else ENGINES:  # float16 would end this process
            for group in groups:
                with xarray.open_dataset(path, group=group, engine=engine) as dataset:
                    dataset.load()
                    problems += [f"{group}/{name}: other values by {engine or 'xarray'}"
                                 for name, seen in dataset.variables.items() if not same(seen.values, file[group][name])]
    dumped = subprocess.run(["h5dump", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if dumped.returncode != 0 or dumped.stderr:
        problems.append(f"h5dump: {dumped.stderr.strip()[:300]}")
    return problems


def near(path, exact):
    """Queries and keys as integers are off by half a step at most."""
    problems, compared = [], 0
    with h5py.File(path) as file, h5py.File(exact) as other:
        assert file.attrs["map_type"] == "int16" and other.attrs["map_type"] == "float32"
        for site in file["maps/0"]:
            for name in ("query", "key") if isinstance(file["maps/0"][site], h5py.Group) else ():
                stored = file[f"maps/0/{site}/{name}"]
                step = stored.attrs["scale_factor"]
                off = np.abs(stored[()] * np.float64(step) - other[f"maps/0/{site}/{name}"][()]).max()
                compared += 1
                if stored.dtype != np.int16 or off > 0.51 * step:
                    problems.append(f"{stored.name}: {stored.dtype}, off by {off / step} steps")
    return problems if compared else ["no maps were compared"]


def make(folder, program, checkpoint, write_samples, data_lines):
    def run(*command, **options):
        subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL, **options)

    common = (program, "analyze", checkpoint, "--text", "In the beginning", "--text", "And God said, Let there be light.")
    files = {"analysis": folder / "all.headscope.h5", "analysis, integers": folder / "integers.headscope.h5",
             "analysis, pair": folder / "pair.headscope.h5",
             "analysis, recurrent layers": folder / "samples/recurrent.headscope.h5",
             "evaluation": folder / "a.evaluation.h5", "evaluation with items": folder / "samples/tasks.evaluation.h5",
             "run": folder / "samples/first/run.h5"}
    run(*common, "-o", files["analysis"], "--record", "maps,attention,states,logits,norms")
    run(*common, "-o", files["analysis, integers"], "--record", "maps", "--maps-int16")
    run(program, "analyze", checkpoint, "--text", "And he said,", "--pair", "Behold.", "-o", files["analysis, pair"])
    (folder / "text.txt").write_text("In the beginning God created the heaven and the earth. " * 20)
    run(program, "evaluate", checkpoint, "--task", "perplexity", "--data", folder / "text.txt", "--length", "16",
        "-o", files["evaluation"])
    (folder / "samples").mkdir()
    run(write_samples, folder / "samples")
    request = {"text": ["text.txt"], "tokenizer": "bytes", "validation": 0.1, "length": 32, "base": str(folder)}
    answer = subprocess.run([data_lines], input=json.dumps(request) + "\n", capture_output=True, text=True, check=True,
                            env={"XDG_CACHE_HOME": str(folder / "cache"), "PATH": "/usr/bin:/bin"}).stdout
    files["tokens"] = pathlib.Path(json.loads(answer)["token_file"])
    return files


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if shutil.which("h5dump") is None:
        sys.exit("expected h5dump (hdf5-tools)")
    found = {}
    if all(name.endswith(".h5") for name in sys.argv[1:]):
        found = {name: check(name) for name in sys.argv[1:]}
    else:
        with tempfile.TemporaryDirectory() as name:
            files = make(pathlib.Path(name), *map(pathlib.Path, sys.argv[1:]))
            found = {kind: check(path) for kind, path in files.items()}
            found["analysis, recurrent layers"] += read_analysis.check_recurrent(files["analysis, recurrent layers"])
            found["analysis, integers"] += near(files["analysis, integers"], files["analysis"])
    for kind, problems in found.items():
        print(f"{kind}: {'; '.join(problems) or 'read the same by all'}")
    sys.exit(1 if any(found.values()) else 0)


if __name__ == "__main__":
    main()
