#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools of `headscope ask` that look at heads, on random checkpoints, against numpy on eager attention in float64.

    ask_corpus_acceptance.py HEADSCOPE
    ask_corpus_acceptance.py --self-check        no program: the references agree with themselves
"""

import json
import pathlib
import sys
import tempfile

import numpy as np
import torch

from ask_acceptance import Hooked, ask, cases, make, read

EPSILON = 0.2
WEIGHT_TOLERANCE = 1e-5  # float32 through three layers against float64


class Eager:
    """Attention weights, values and the residual stream of a text."""

    def __init__(self, hooked, ids):
        _, seen = hooked.record(ids)
        with torch.no_grad():
            out = hooked.model(torch.tensor([ids]), output_attentions=True, use_cache=True)
        self.weights = np.stack([one[0].double().numpy() for one in out.attentions])  # [layers, heads, L, L]
        self.values = np.stack([layer.values[0].double().numpy() for layer in out.past_key_values.layers])
        self.stream = np.stack([seen["in", name][0].numpy() for name in hooked.blocks]
                               + [seen["out", hooked.blocks[-1]][0].numpy()])


def row_entropy(weights):
    return -(weights * np.log(np.where(weights > 0, weights, 1))).sum(-1)


def expected_sinks(hooked, ids):
    eager, shorter = Eager(hooked, ids), Eager(hooked, ids[1:])
    length = len(ids)
    mass = eager.weights.sum(-2) / np.arange(length, 0, -1)
    rest = eager.weights[..., 1:, 1:]
    rest = rest / rest.sum(-1, keepdims=True)
    sizes = np.abs(eager.stream)
    flat = eager.stream.reshape(len(eager.stream), -1)
    top = np.abs(flat).argmax(-1)
    median = np.median(sizes.reshape(len(sizes), -1), -1)
    above = mass > EPSILON
    return {
        "column_mass": mass[None],
        "rate": above.mean((0, 1)),
        "rate_by_site": above.mean(1),
        "secondary": above[..., 1:].sum(-1)[None],
        "entropy_row_mean": row_entropy(eager.weights).mean(-1)[None],
        "entropy_row_mean_without_first_column": row_entropy(rest).mean(-1)[None],
        "entropy_row_mean_without_first_token": row_entropy(shorter.weights).mean(-1)[None],
        "sink_without_first_token": shorter.weights[..., 0].mean(-1)[None],
        "activation_median": median[None],
        "activation_maximum": np.take_along_axis(flat, top[:, None], 1)[None, :, 0],
        "activation_position": top[None] // eager.stream.shape[-1],
        "activation_channel": top[None] % eager.stream.shape[-1],
        "massive": ((sizes > 100) & (sizes >= 1000 * median[:, None, None])).sum((1, 2))[None],
        "hidden_norm": np.linalg.norm(eager.stream, axis=-1)[None],
        "value_norm": np.linalg.norm(eager.values, axis=-1)[None],
    }


def expected_corpus(hooked, texts):
    """Measures of heads, as float64 sums over all texts."""
    sums = {key: 0 for key in ("self", "previous", "entropy", "distance", "square", "induction")}
    repeats, maxima, sinks = 0, [], []
    for ids in texts:
        weights, tokens = Eager(hooked, ids).weights, np.array(ids)
        apart = np.arange(len(ids))[:, None] - np.arange(len(ids))[None]
        sums["self"] += np.trace(weights, axis1=-2, axis2=-1)
        sums["previous"] += np.trace(weights, -1, -2, -1)
        sums["entropy"] += -(weights * np.log(np.maximum(weights, 2.0**-126))).sum((-1, -2))
        sums["distance"] += (weights * np.abs(apart)).sum((-1, -2))
        sums["square"] += (weights * apart**2).sum((-1, -2))
        copies = np.tril(tokens[:, None] == tokens[None], -1)
        follows = np.zeros_like(copies)
        follows[:, 1:] = copies[:, :-1]
        sums["induction"] += (weights * follows).sum((-1, -2))
        repeats += copies.any(-1).sum()
        maxima.append(weights[..., 1:, 1:].max((-1, -2)))
        sinks.append(weights[..., 0].mean(-1))
    count = sum(map(len, texts))
    mean = sums["distance"] / count
    return {
        "self_attention_score": sums["self"] / count,
        "prev_token_score": sums["previous"] / (count - len(texts)),
        "pattern_entropy": sums["entropy"] / count,
        "qk_distance": mean,
        "qk_distance_variance": sums["square"] / count - mean**2,
        "induction_score": sums["induction"] / repeats,
        "maximum_mean": np.mean(maxima, 0),
        "mean/sink": np.mean(sinks, 0),
        "std/sink": np.std(sinks, 0, ddof=1),
    }


def compare(name, expected, stored, tolerance):
    worst = 0
    for key, wanted in expected.items():
        wanted = np.asarray(wanted, dtype=np.float64)
        found = np.asarray(stored[key], dtype=np.float64).reshape(wanted.shape)
        assert np.array_equal(np.isnan(wanted), np.isnan(found)), (name, key)
        apart = np.nan_to_num(np.abs(wanted - found) / np.maximum(np.abs(wanted), 1)).max(initial=0)
        worst = max(worst, apart)
        assert apart < tolerance, (name, key, apart)
    print(f"{name}: {len(expected)} tables, largest difference {worst:.1e}")


def check(program, name, hooked, texts, folder):
    tokens, output, model = folder / "tokens.json", folder / "out.ask.h5", folder / "model"
    tokens.write_text(json.dumps(texts[:1]))
    ask(program, "sinks", model, output, "--tokens", tokens, "--epsilon", str(EPSILON))
    compare(f"{name}, sinks", expected_sinks(hooked, texts[0]), read(output, "sinks"), WEIGHT_TOLERANCE)
    tokens.write_text(json.dumps(texts))
    ask(program, "corpus", model, output, "--tokens", tokens)
    compare(f"{name}, corpus", expected_corpus(hooked, texts), read(output, "corpus"), WEIGHT_TOLERANCE)


def self_check(name, hooked, texts):
    sinks = expected_sinks(hooked, texts[0])
    assert np.allclose(sinks["column_mass"][..., 0], Eager(hooked, texts[0]).weights[..., 0].mean(-1))
    assert np.all(sinks["entropy_row_mean_without_first_column"] <= np.log(len(texts[0]) - 1))
    corpus = expected_corpus(hooked, texts[:1])
    assert np.allclose(corpus["pattern_entropy"], sinks["entropy_row_mean"][0])
    assert np.all(corpus["qk_distance_variance"] > 0)
    print(f"{name}: references agree with themselves")


def main():
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 61, (length,), generator=generator).tolist() for length in (11, 17, 23, 14)]
    for name, (kind, config, *names) in cases().items():
        model = make(kind, config)
        with tempfile.TemporaryDirectory() as place:
            folder = pathlib.Path(place)
            model.save_pretrained(folder / "model")
            hooked = Hooked(model, *names)
            if sys.argv[1] == "--self-check":
                self_check(name, hooked, texts)
            else:
                check(sys.argv[1], name, hooked, texts, folder)


if __name__ == "__main__":
    main()
