#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys that `headscope ask cache` keeps of a random Llama against those that the presses of the package kvpress keep.

    ask_kvpress_acceptance.py HEADSCOPE [--packages FOLDER]

The presses score what transformers' own attention layers compute of the context, in float64. Skipped (77) without the
package.
"""

import json
import pathlib
import tempfile

import torch
import transformers

import foreign_packages
from ask_acceptance import ask, cases, make, read
from ask_corpus_acceptance import CONTEXT, FUTURE, KERNEL, RATIOS, SINK, WINDOW


def presses():
    """By our name of the scorer, without a ratio."""
    import kvpress
    return {
        "h2o": lambda ratio: kvpress.ObservedAttentionPress(ratio),
        "snapkv": lambda ratio: kvpress.SnapKVPress(ratio, window_size=WINDOW, kernel_size=KERNEL),
        "tova": lambda ratio: kvpress.TOVAPress(ratio),
        "streaming_llm": lambda ratio: kvpress.StreamingLLMPress(ratio, n_sink=SINK),
        "key_norm": lambda ratio: kvpress.KnormPress(ratio),
        "key_difference": lambda ratio: kvpress.KeyDiffPress(ratio),
        "expected_attention": lambda ratio: kvpress.ExpectedAttentionPress(ratio, n_future_positions=FUTURE,
                                                                           n_sink=SINK),
    }


def kept_by(model, press, ids, ratio):
    """Ascending indices [layers, groups, kept]."""
    from kvpress.utils import compute_n_kept
    cache, kept, handles = transformers.DynamicCache(), [], []

    def look(module, _, kwargs, output):
        layer = cache.layers[module.layer_idx]
        scores = press.score(module, kwargs["hidden_states"], layer.keys, layer.values, output[1], kwargs)
        count = compute_n_kept(len(ids), ratio)
        kept.append(scores[0].topk(count, dim=-1).indices.sort().values)

    for block in model.model.layers:
        block.self_attn.rotary_emb = model.model.rotary_emb
        handles.append(block.self_attn.register_forward_hook(look, with_kwargs=True))
    with torch.no_grad():
        model(torch.tensor([ids]), past_key_values=cache, use_cache=True)
    for handle in handles:
        handle.remove()
    return torch.stack(kept)


def main():
    given = foreign_packages.arguments(__doc__)
    foreign_packages.load("kvpress", given.packages)
    kind, config, *_ = cases()["llama"]
    model = make(kind, config)
    ids = torch.randint(3, 61, (23,), generator=torch.Generator().manual_seed(7)).tolist()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        model.save_pretrained(folder / "model")
        (folder / "tokens.json").write_text(json.dumps([ids]))
        ask(given.headscope, "cache", folder / "model", folder / "out.ask.h5", "--tokens", folder / "tokens.json",
            "--context", str(CONTEXT), "--scorers", ",".join(presses()), "--ratios", ",".join(map(str, RATIOS)),
            "--window", str(WINDOW), "--kernel", str(KERNEL), "--sink", str(SINK), "--future", str(FUTURE))
        stored = read(folder / "out.ask.h5", "cache")
    model = model.double()
    for name, press in presses().items():
        for number, ratio in enumerate(RATIOS):
            expected = kept_by(model, press(ratio), ids[:CONTEXT], ratio)
            found = torch.tensor(stored[f"{name}/kept"])[0, number]
            assert torch.equal(found[..., :expected.shape[-1]], expected), (name, ratio, found, expected)
            assert (found[..., expected.shape[-1]:] == -1).all(), (name, ratio, found)
        print(f"{name}: the keys that kvpress keeps, at {len(RATIOS)} ratios")


if __name__ == "__main__":
    main()
