#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small PyTorch files written by torch.save, and the same numbers in safetensors.

    pytorch_files.py OUTPUT_FOLDER      writes the golden files (tests/oracle/generate/data/pytorch): NAME.pt and, where the weights of
                                        NAME.pt can be read, NAME.safetensors with what must be found in it
"""

import argparse
import collections
import datetime
import pathlib
import sys
import warnings

import numpy
import torch
from safetensors.torch import save_file

TYPES = ["float64", "float32", "float16", "bfloat16", "float8_e5m2", "float8_e4m3fn", "float8_e8m0fnu",
         "float8_e4m3fnuz", "float8_e5m2fnuz", "uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "bool", "complex64"]


class Subclass(torch.Tensor):
    """A tensor class that the reader cannot know."""


class Settings:
    """An instance of a class that the reader cannot know."""

    def __init__(self):
        self.rate = 0.1


def types():
    generator = torch.Generator().manual_seed(3)
    numbers = torch.randn(3, 5, generator=generator, dtype=torch.float64) * 3
    return {name: numbers.abs().to(torch.float32).to(getattr(torch, name)) if name.startswith("uint") or "e8m0" in name
            else numbers.to(getattr(torch, name)) for name in TYPES}


def views():
    base = torch.arange(840, dtype=torch.float32).reshape(4, 5, 6, 7)
    tied = torch.randn(9, 3, generator=torch.Generator().manual_seed(4))
    counted = torch.arange(100, dtype=torch.int32)
    attributed = torch.nn.Parameter(torch.arange(4.0))
    attributed.note = "kept beside the tensor"
    return collections.OrderedDict({
        "transposed": torch.arange(15.0).reshape(3, 5).t(), "permuted": base.permute(2, 0, 3, 1),
        "whole": base, "slice": base[1:3, :, 2:5], "every_other": base[:, ::2, :, ::3], "column": base[:, 1, 2, 3],
        "expanded": torch.arange(3.0).reshape(3, 1).expand(3, 4), "scalar": torch.tensor(2.5),
        "scalar_view": base[1, 2, 3, 4], "empty": torch.zeros(0, 3), "empty_view": base[:, 5:],
        "windows": counted.as_strided((10, 4), (3, 2), 5), "one_row": base[2:3, :1, :1], "tied.a": tied, "tied.b": tied,
        "tied.transposed": tied.t(), "parameter": torch.nn.Parameter(torch.arange(6.0)), "attributed": attributed,
        "bool_view": torch.tensor([[True, False, True], [False, False, True]]).t(),
        "name with \"quotes\", ümläut and \n": torch.tensor([1.0]), "": torch.tensor([7.0]),
    })


def small(prefix=""):
    return {prefix + "weight": torch.arange(6.0).reshape(2, 3), prefix + "bias": torch.arange(2, dtype=torch.float16)}


def everything_beside():
    """What training loops keep beside the weights; nothing of it may hinder."""
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(3))])
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3)
    optimizer.step()
    return {
        "epoch": 3, "large": 2**80, "loss": 0.5, "name": "a run", "nothing": None, "done": True, "bytes": b"\0\1",
        "args": argparse.Namespace(rate=0.1, path=pathlib.PurePosixPath("/tmp")), "when": datetime.datetime(2024, 1, 2),
        "set": {1, 2}, "frozen": frozenset({3}), "tuple": (1, 2, (3, [4])), "device": torch.device("cpu"),
        "dtype": torch.float16, "array": numpy.arange(3), "number": numpy.float64(2.0), "state": numpy.random.RandomState(1),
        "random": torch.get_rng_state(), "optimizer": optimizer.state_dict(), "settings": Settings(),
        "counter": collections.Counter("abca"), "default": collections.defaultdict(list, {"a": [1]}), 7: "seven",
        "array_bytes": bytearray(b"abc"), "complex": 1 + 2j, "size": torch.Size([2, 3]), "layout": torch.strided,
        "model_state_dict": small("module."),
    }


def quantised():
    made = torch.quantize_per_tensor(torch.arange(4.0), 0.1, 0, torch.qint8)
    return {"plain": torch.arange(3.0), "quantised": made, "wide": torch.zeros(2, dtype=torch.complex128),
            "conjugate": torch.tensor([1 + 2j]).conj(), "negative": torch.tensor([1 + 2j]).conj().imag,
            "sparse": torch.eye(3).to_sparse(), "meta": torch.zeros(3, device="meta"),
            "subclass": torch.arange(3.0).as_subclass(Subclass), "step": 3}


def save(folder, name, value, expected=None, **options):
    torch.save(value, folder / f"{name}.pt", **options)
    if expected is not None:
        save_file({key: tensor.detach().contiguous().clone() for key, tensor in expected.items()},
                  folder / f"{name}.safetensors")


def hide_places(path):
    """Old files of modules name the source files that their classes are in: another name of as many letters."""
    place = str(pathlib.Path(torch.__file__).parent).encode()
    path.write_bytes(path.read_bytes().replace(place, b"/" + b"x" * (len(place) - 1)))


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    save(folder, "types", types(), types())
    save(folder, "views", views(), views())
    for protocol in (2, 3, 4, 5):
        save(folder, f"protocol{protocol}", everything_beside(), small(), pickle_protocol=protocol)
    lightning = {"state_dict": small("model."), "epoch": 1}
    save(folder, "lightning", lightning, small("model."))
    save(folder, "nested", {"model": {"state_dict": {"module._orig_mod.a": torch.ones(2), "module._orig_mod.b": torch.zeros(1)}}},
         {"a": torch.ones(2), "b": torch.zeros(1)})
    save(folder, "tree", {"model": {"encoder": small(), "decoder": small()}},
         {f"{part}.{name}": tensor for part in ("encoder", "decoder") for name, tensor in small().items()})
    module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    torch.nn.init.constant_(module[0].weight, 0.25)
    torch.nn.init.constant_(module[0].bias, 0.5)
    save(folder, "module_state", module.state_dict(), dict(module.state_dict()))
    save(folder, "quantised", quantised(), {"plain": torch.arange(3.0)})
    torch.serialization.set_crc32_options(False)
    save(folder, "no_checksums", small(), small())
    torch.serialization.set_crc32_options(True)
    save(folder, "whole_module", module)
    save(folder, "tensor", torch.ones(2))
    save(folder, "no_tensors", {"epoch": 1, "args": argparse.Namespace(a=1)})
    # As before version 1.6: storages behind the pickles.
    old = dict(_use_new_zipfile_serialization=False)
    save(folder, "legacy", small(), small(), **old)
    save(folder, "legacy_views", views(), views(), **old)
    save(folder, "legacy_protocol4", small("module."), small(), pickle_protocol=4, **old)
    save(folder, "legacy_module", module, **old)
    hide_places(folder / "legacy_module.pt")
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 1)), folder / "script.pt")


def main():
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    write(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
