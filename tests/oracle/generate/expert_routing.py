# SPDX-License-Identifier: GPL-3.0-or-later
"""Which experts take a token, and with which weight: what transformers hands to its experts, layer by layer.

    python tests/oracle/generate/expert_routing.py                     writes tests/oracle/generate/data/expert_routing.json
    python tests/oracle/generate/expert_routing.py --check HEADSCOPE   analyses the same models, reads the files with h5py

Models are the tiny ones of models/, in float64. A token's experts are in order of weight. The check has texts of two
lengths, one layer left out of the measuring, and looks at the whole file as read_analysis.py does.

Needs torch 2.14, transformers 5.23, safetensors; the check also h5py and xarray.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch

sys.path += [str(pathlib.Path(__file__).resolve().parents[1] / folder) for folder in ("accept", "models")]
from models import ids, read_golden, rounded, write_checkpoint
from switched_heads import load

NAMES = ("mixtral", "mixtral-stacked-old", "qwen2-moe", "qwen2-moe-stacked-windows-old", "qwen3-moe", "olmoe",
         "granitemoe", "gpt-oss", "gpt-oss-limit-old")
# Weights come from logits of a dozen rounded operations in float32; choices that are nearer than this are no test.
TOLERANCE = 64 * 2.0 ** -23


def routing(model, tokens):
    """Per layer: experts and weights [B, L, k] in order of weight, or None."""
    layers, handles = [None] * model.config.num_hidden_layers, []

    def hook(module, inputs, options, layer):
        _, index, weight = (*inputs, *options.values())[:3]
        order = weight.argsort(dim=-1, descending=True, stable=True)
        shape = (*tokens.shape, -1)
        layers[layer] = index.gather(-1, order).reshape(shape), weight.gather(-1, order).double().reshape(shape)

    for name, module in model.named_modules():
        if name.endswith(".experts"):
            layer = int(name.split("layers.")[1].split(".")[0])
            handles.append(module.register_forward_pre_hook(lambda *call, at=layer: hook(*call, at), with_kwargs=True))
    with torch.no_grad():
        model(tokens, use_cache=False)
    for handle in handles:
        handle.remove()
    assert any(layers), "no module named experts was called"
    for found in layers:
        if found and found[1].shape[-1] > 1:
            assert found[1].diff(dim=-1).abs().min() > 2 * TOLERANCE, "experts of nearly equal weight"
    return layers


def write():
    result = {}
    for name in NAMES:
        data = read_golden(name)
        layers = routing(load(name, data), torch.tensor(data["ids"]))
        result[name] = [found and {"index": found[0].flatten().tolist(), "weight": rounded(found[1])} for found in layers]
        print(name, [found and tuple(found[0].shape) for found in layers])
    (pathlib.Path(__file__).parent / "data/expert_routing.json").write_text(json.dumps(result, separators=(",", ":")) + "\n")


def check_file(path, model, texts, experts, left_out):
    import h5py
    with h5py.File(path, "r") as file:
        index, weight = file["experts/index"], file["experts/weight"]
        assert index.dtype == "int16" and weight.dtype == "float32", (index.dtype, weight.dtype)
        assert index.attrs["experts"] == experts, index.attrs["experts"]
        for s, text in enumerate(texts):
            for layer, found in enumerate(routing(model, torch.tensor([text]))):
                here, weights = torch.tensor(index[s, layer].astype(int)), torch.tensor(weight[s, layer]).double()
                if found is None or layer == left_out:
                    assert (here == -1).all() and weights.isnan().all(), f"sequence {s} layer {layer}: not marked"
                    continue
                length = len(text)
                assert (here[:length] == found[0][0]).all(), f"sequence {s} layer {layer}: other experts"
                worst = (weights[:length] - found[1][0]).abs().max().item()
                assert worst < TOLERANCE, f"sequence {s} layer {layer}: weights differ by {worst}"
                assert (here[length:] == -1).all() and weights[length:].isnan().all(), f"sequence {s}: past its end"


def check(program):
    from read_analysis import check_file as whole
    for name in NAMES:
        data = read_golden(name)
        model = load(name, data)
        vocabulary = data["config"]["vocab_size"]
        texts = [*data["ids"], ids(5, vocabulary, 3)]
        experts = next(module.num_experts for at, module in model.named_modules() if at.endswith(".experts"))
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_checkpoint(folder / "model", data)
            (folder / "tokens.json").write_text(json.dumps(texts))
            for left_out in (None, 0):
                output = folder / "out.headscope.h5"
                layers = [] if left_out is None else ["--layers", f"1-{model.config.num_hidden_layers - 1}"]
                subprocess.run([program, "analyze", folder / "model", "-o", output, "--tokens", folder / "tokens.json",
                                "--record", "experts", *layers], check=True, stdout=subprocess.DEVNULL)
                check_file(output, model, texts, experts, left_out)
                problems = whole(output)
                assert not problems, problems
        print(name, "OK")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", metavar="HEADSCOPE")
    options = parser.parse_args()
    check(options.check) if options.check else write()


if __name__ == "__main__":
    main()
