#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollout and norm-based maps of random checkpoints, as `export --format csv` writes them, against their definitions on what
transformers computes in float64: its attentions, the values that enter them, and the output projection's weight.

    maps_acceptance.py HEADSCOPE
    maps_acceptance.py --self-check        no program: the vectors that norms are of sum up to what attention gives
"""

import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

TOKENS = 19
# float32 weights and values of order 1 against float64, through three layers; norms are of order 0.1 to 10.
TOLERANCE = 2e-5


def cases():
    common = {"vocab_size": 61, "initializer_range": 0.3, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    gpt2 = transformers.GPT2Config(n_embd=24, n_layer=3, n_head=4, n_positions=32, **common)
    llama = transformers.LlamaConfig(hidden_size=24, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
                                     intermediate_size=40, max_position_embeddings=32, **common)
    bert = transformers.BertConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, intermediate_size=40,
                                   max_position_embeddings=32, **common)
    return {
        "gpt2": (transformers.GPT2LMHeadModel, gpt2, "transformer.h.{}.attn.c_attn", "transformer.h.{}.attn.c_proj"),
        "llama": (transformers.LlamaForCausalLM, llama, "model.layers.{}.self_attn.v_proj", "model.layers.{}.self_attn.o_proj"),
        "bert": (transformers.BertForMaskedLM, bert, "bert.encoder.layer.{}.attention.self.value",
                 "bert.encoder.layer.{}.attention.output.dense"),
    }


def make(kind, config):
    torch.manual_seed(7)
    config._attn_implementation = "eager"
    model = kind(config).float().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    return model


def trace(model, ids, value_name, output_name):
    """For each layer: weights [H, L, L], and what each head gives for a key, [H, L, d]."""
    model = model.double()
    values, read, given, hooks = {}, {}, {}, []
    layers = model.config.num_hidden_layers
    for layer in range(layers):
        value, output = (model.get_submodule(name.format(layer)) for name in (value_name, output_name))
        hooks.append(value.register_forward_hook(lambda _, __, out, layer=layer: values.__setitem__(layer, out[0])))
        hooks.append(output.register_forward_hook(lambda _, into, out, layer=layer: read.__setitem__(layer, out[0])))
    with torch.no_grad():
        attentions = model(torch.tensor([ids]), output_attentions=True).attentions
    for hook in hooks:
        hook.remove()
    found = []
    for layer in range(layers):
        weights = attentions[layer][0].numpy()
        module = model.get_submodule(output_name.format(layer))
        matrix = module.weight.detach().numpy()  # [d, heads * size], of GPT-2 transposed
        matrix = matrix.T if isinstance(module, transformers.pytorch_utils.Conv1D) else matrix
        heads, width = weights.shape[0], matrix.shape[0]
        size = matrix.shape[1] // heads
        value = values[layer].numpy()
        value = value[:, -width:] if "c_attn" in value_name else value  # the last of query, key, value
        value = value.reshape(len(ids), -1, size).transpose(1, 0, 2)
        value = np.repeat(value, heads // value.shape[0], axis=0)
        vectors = np.stack([value[h] @ matrix[:, h * size:(h + 1) * size].T for h in range(heads)])
        bias = module.bias.detach().numpy() if module.bias is not None else 0
        # All of it is what attention adds to the stream, without the bias.
        whole = np.einsum("hij,hjd->id", weights, vectors)
        assert np.allclose(whole + bias, read[layer].numpy(), atol=1e-10), layer
        found.append((weights, vectors))
    return found


def expected(found):
    """By (values, layer, head or -1): [L, L]."""
    maps, result = {}, np.eye(TOKENS)
    for layer, (weights, vectors) in enumerate(found):
        mixed = 0.5 * weights.mean(axis=0) + 0.5 * np.eye(TOKENS)
        result = mixed / mixed.sum(axis=-1, keepdims=True) @ result
        maps["rollout", layer, -1] = result
        given = weights[..., None] * vectors[:, None]
        for head in range(len(weights)):
            maps["norms", layer, head] = np.linalg.norm(given[head], axis=-1)
        maps["layer-norms", layer, -1] = np.linalg.norm(given.sum(axis=0), axis=-1)
    return maps


def read(path, head):
    """NaN where the table has no pair."""
    values = np.full((TOKENS, TOKENS), np.nan)
    with open(path) as table:
        for row in csv.DictReader(table):
            number = float(row["rollout"] if "rollout" in row else row["norm"])
            if head < 0 or int(row["head"]) == head:
                values[int(row["query"]), int(row["key"])] = number
    return values


def compare(program, name, folder, kind, config, value_name, output_name):
    model = make(kind, config)
    checkpoint, file = folder / name, folder / f"{name}.headscope.h5"
    model.save_pretrained(checkpoint)
    ids = np.random.default_rng(3).integers(1, 60, TOKENS).tolist()
    (folder / "ids.json").write_text(json.dumps([ids]))
    wanted = expected(trace(model, ids, value_name, output_name))
    if program is None:
        return True

    def run(*command):
        subprocess.run([program, *map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    run("analyze", checkpoint, "--tokens", folder / "ids.json", "--record", "maps,norms", "-o", file)
    good = True
    for (values, layer, head), right in wanted.items():
        table = folder / "table.csv"
        chosen = ("--head", head) if head >= 0 else ()
        run("export", file, "--figure", "attention", "--values", values, "--layer", layer, *chosen, "-o", table)
        seen = read(table, head)
        causal = np.isnan(seen)
        worst = np.abs(np.where(causal, 0, seen) - np.where(causal, 0, right)).max()
        fits = worst <= TOLERANCE * max(1, right.max()) and np.abs(right[causal]).max(initial=0) == 0
        good &= fits
        print(f"{'ok ' if fits else 'BAD'} {name} {values} layer {layer} head {head}: off by {worst:.1e}")
    return good


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = None if sys.argv[1] == "--self-check" else sys.argv[1]
    good = True
    for name, (kind, config, value_name, output_name) in cases().items():
        with tempfile.TemporaryDirectory() as folder:
            good &= compare(program, name, pathlib.Path(folder), kind, config, value_name, output_name)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
