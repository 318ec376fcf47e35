#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small safetensors files written by the official library, and checks of files that Headscope wrote.

    checkpoint_files.py OUTPUT_FOLDER                  writes the golden files (tests/oracle/generate/data/checkpoint)
    checkpoint_files.py --check WRITTEN SOURCE DTYPE   WRITTEN, a folder that Headscope converted from SOURCE, must hold
                                                       exactly what torch makes of it, and open in transformers
"""

import argparse
import hashlib
import json
import pathlib
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file

FLOATING = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "F8_E5M2": torch.float8_e5m2, "F8_E4M3": torch.float8_e4m3fn, "F8_E8M0": torch.float8_e8m0fnu,
    "F8_E4M3FNUZ": torch.float8_e4m3fnuz, "F8_E5M2FNUZ": torch.float8_e5m2fnuz,
}
WHOLE = {
    "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "U16": torch.uint16, "I32": torch.int32,
    "U32": torch.uint32, "I64": torch.int64, "U64": torch.uint64,
}
WANTED = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16, "float64": torch.float64}


def floating_tensors():
    """Every 8-bit pattern of the 8-bit types; edges and ordinary values of the others."""
    generator = torch.Generator().manual_seed(1)
    edges = [0.0, -0.0, 1.0, -1.5, 2.0**-24, 2.0**-133, 6.1e-5, 65504.0, 1e5, 3.0e38, float("inf"), float("-inf"),
             float("nan"), 1.00390625, 1.01171875, 0.1]
    tensors = {}
    for name, dtype in FLOATING.items():
        if name.startswith("F8"):
            tensors[name] = torch.arange(256, dtype=torch.int64).to(torch.uint8).reshape(2, 128).view(dtype)
        else:
            random = torch.randn(129 - len(edges), generator=generator, dtype=torch.float64)
            values = torch.cat([torch.tensor(edges, dtype=torch.float64), random])
            tensors[name] = values.to(dtype).reshape(3, 43)
    return tensors


def other_tensors():
    tensors = {"BOOL": torch.tensor([True, False, True]), "C64": torch.tensor([[1 + 2j], [-0.5j]], dtype=torch.complex64)}
    for name, dtype in WHOLE.items():
        info = torch.iinfo(dtype)
        tensors[name] = torch.tensor([info.min, 0, 1, 7, info.max], dtype=dtype)
    tensors["scalar"] = torch.tensor(2.5)
    tensors["empty"] = torch.zeros(0, 3)
    tensors["name with \"quotes\", ümläut and \n"] = torch.tensor([1.0])
    return tensors


def write(folder):
    folder.mkdir(parents=True, exist_ok=True)
    floating = floating_tensors()
    save_file({**floating, **other_tensors()}, folder / "types.safetensors", metadata={"format": "pt", "é": "\"x\""})
    for name, dtype in WANTED.items():
        save_file({key: value.to(dtype) for key, value in floating.items()}, folder / f"as_{name}.safetensors")
    for path in folder.glob("*.safetensors"):
        path.chmod(0o644)


def read_folder(folder):
    """All tensors of a checkpoint folder, by the official library; the index, where there is one, must agree."""
    tensors = {}
    index = folder / "model.safetensors.index.json"
    files = [folder / "model.safetensors"]
    weight_map = None
    if index.exists():
        weight_map = json.loads(index.read_text())["weight_map"]
        files = [folder / name for name in sorted(set(weight_map.values()))]
    for file in files:
        with safe_open(file, framework="pt") as opened:
            assert opened.metadata() == {"format": "pt"} or weight_map is None, opened.metadata()
            for key in opened.keys():
                assert key not in tensors, key
                assert weight_map is None or weight_map[key] == file.name, key
                tensors[key] = opened.get_tensor(key)
    return tensors


def bits(tensor):
    return tensor.contiguous().flatten().view(torch.uint8) if tensor.numel() else tensor.flatten()


def check(written, source, dtype):
    after, before = read_folder(written), read_folder(source)
    assert after.keys() == before.keys(), set(after) ^ set(before)
    for key, value in before.items():
        expected = value.to(WANTED[dtype]) if value.dtype.is_floating_point else value
        assert after[key].dtype == expected.dtype and after[key].shape == expected.shape, key
        assert torch.equal(bits(after[key]), bits(expected)), key
    manifest = json.loads((written / "manifest.json").read_text())
    names = {path.name for path in written.iterdir()} - {"manifest.json"}
    assert set(manifest["files"]) == names, names ^ set(manifest["files"])
    for name, entry in manifest["files"].items():
        content = (written / name).read_bytes()
        assert entry == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}, name
    if (written / "config.json").exists():
        from transformers import AutoModelForCausalLM

        model, info = AutoModelForCausalLM.from_pretrained(written, dtype="auto", output_loading_info=True)
        assert model.dtype == WANTED[dtype], model.dtype
        assert not info["missing_keys"] and not info["unexpected_keys"], info
        state = model.state_dict()
        for key, value in after.items():
            assert torch.equal(state[key], value), key
    print(f"{len(after)} tensors as they should be")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", nargs=3, metavar=("WRITTEN", "SOURCE", "DTYPE"))
    parser.add_argument("output", nargs="?", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.check:
        written, source, dtype = arguments.check
        check(pathlib.Path(written), pathlib.Path(source), dtype)
    elif arguments.output:
        write(arguments.output)
    else:
        parser.error("expected OUTPUT_FOLDER or --check")
    return 0


if __name__ == "__main__":
    sys.exit(main())
