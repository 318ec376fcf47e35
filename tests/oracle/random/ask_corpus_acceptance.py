#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tools of `headscope ask` that look at heads, on random checkpoints, against numpy on eager attention in float64.

    ask_corpus_acceptance.py HEADSCOPE
    ask_corpus_acceptance.py --self-check        no program: the references agree with themselves
"""

import json

import numpy as np
import torch

from ask_acceptance import ask, read, run_cases

EPSILON = 0.2
CACHE_TOLERANCE = 1e-4
WEIGHT_TOLERANCE = 1e-5  # float32 through three layers against float64


class Eager:
    """Attention weights, keys, values and the residual stream of a text."""

    def __init__(self, hooked, ids):
        _, seen = hooked.record(ids)
        with torch.no_grad():
            out = hooked.model(torch.tensor([ids]), output_attentions=True, use_cache=True)
        self.weights = np.stack([one[0].double().numpy() for one in out.attentions])  # [layers, heads, L, L]
        self.keys = np.stack([layer.keys[0].double().numpy() for layer in out.past_key_values.layers])
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
        "std/sink": np.std(sinks, 0, ddof=1) if len(texts) > 1 else np.full(sinks[0].shape, np.nan),
    }


CONTEXT, FUTURE, SINK, WINDOW, KERNEL = 16, 24, 4, 5, 3
RATIOS = 0.25, 0.5
SCORERS = ["h2o", "snapkv", "tova", "streaming_llm", "key_norm", "key_difference", "expected_attention"]


def of_groups(scores, groups):
    return scores.reshape(groups, -1, scores.shape[-1]).mean(1)


def expected_weights(hooked, layer, ids, keys, values):
    """kvpress's expected attention of keys behind the sinks, [groups, keys]."""
    block = hooked.model.model.layers[layer]
    _, seen = hooked.record(ids)
    with torch.no_grad():
        read = block.input_layernorm(seen["in", hooked.blocks[layer]])
        query = block.self_attn.q_proj(read)[0].unflatten(-1, (hooked.heads, -1)).transpose(0, 1)[:, SINK:CONTEXT]
        query = query.double().numpy()
        places = torch.arange(CONTEXT, CONTEXT + FUTURE)[None]
        cosine, sine = (one[0].double().numpy() for one in hooked.model.model.rotary_emb(read, places))
    size = query.shape[-1]
    half = np.zeros((size, size))
    half[size // 2:, :size // 2], half[:size // 2, size // 2:] = np.eye(size // 2), -np.eye(size // 2)
    turn = (cosine[:, None] * np.eye(size) + sine[:, None] * half).mean(0)
    mean = query.mean(1, keepdims=True)
    covariance = np.einsum("hni,hnj->hij", query - mean, query - mean) / query.shape[1]
    mean, covariance = mean[:, 0] @ turn.T, turn @ covariance @ turn.T
    keys = np.repeat(keys[:, SINK:], hooked.heads // len(keys), 0)
    logits = np.einsum("hnd,hd->hn", keys, mean) / np.sqrt(size)
    logits = logits + np.einsum("hni,hij,hnj->hn", keys, covariance, keys) / (2 * size)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    return of_groups(weights / weights.sum(-1, keepdims=True), len(values)) * np.linalg.norm(values[:, SINK:], axis=-1)


def cache_scores(hooked, scorer, layer, ids, weights, keys, values, ratio):
    """Scores as kvpress computes them (release 0.5), [groups, context]: what is kept in any case is infinite."""
    groups, always = len(keys), np.inf
    own = weights[:, :CONTEXT, :CONTEXT]
    if scorer == "h2o":
        return of_groups(own.sum(1) / np.arange(CONTEXT, 0, -1), groups)
    if scorer == "snapkv":
        mean = torch.tensor(own[:, -WINDOW:, :-WINDOW].mean(1))
        pooled = torch.nn.functional.avg_pool1d(mean, KERNEL, padding=KERNEL // 2, stride=1).numpy()
        return np.pad(of_groups(pooled, groups), ((0, 0), (0, WINDOW)), constant_values=always)
    if scorer == "tova":
        return np.pad(np.repeat(own[:, -1, :-1].mean(0)[None], groups, 0), ((0, 0), (0, 1)), constant_values=always)
    if scorer == "streaming_llm":
        scores, pruned = np.ones((groups, CONTEXT)), CONTEXT - int(CONTEXT * (1 - ratio))
        scores[:, SINK:SINK + pruned] = 0
        return scores
    if scorer == "key_norm":
        return -np.linalg.norm(keys, axis=-1)
    if scorer == "key_difference":
        keys = torch.tensor(keys)
        anchor = torch.nn.functional.normalize(keys, dim=-1).mean(1, keepdim=True)
        return -torch.nn.functional.cosine_similarity(keys, anchor, dim=-1).numpy()
    return np.pad(expected_weights(hooked, layer, ids, keys, values), ((0, 0), (SINK, 0)), constant_values=always)


def expected_cache(hooked, ids, scorers):
    eager, expected = Eager(hooked, ids), {}
    for scorer in scorers:
        kept = [[], []]
        error = [[], []]
        for number, ratio in enumerate(RATIOS):
            count = int(CONTEXT * (1 - ratio))
            for layer, (weights, values) in enumerate(zip(eager.weights, eager.values)):
                keys = eager.keys[layer][:, :CONTEXT]
                scores = cache_scores(hooked, scorer, layer, ids, weights, keys, values[:, :CONTEXT], ratio)
                best = np.sort(np.argsort(-scores, -1, kind="stable")[:, :count], -1)
                kept[number].append(np.pad(best, ((0, 0), (0, int(CONTEXT * (1 - RATIOS[0])) - count)),
                                           constant_values=-1))
                seen = np.zeros((len(keys), len(ids)))
                np.put_along_axis(seen, best, 1, -1)
                seen[:, CONTEXT:] = 1
                group = hooked.heads // len(keys)
                left = weights[:, CONTEXT:] * np.repeat(seen, group, 0)[:, None]
                left = left / left.sum(-1, keepdims=True)
                values_of = np.repeat(values, group, 0)
                before = weights[:, CONTEXT:] @ values_of
                error[number].append(np.linalg.norm(left @ values_of - before, axis=(1, 2))
                                     / np.linalg.norm(before, axis=(1, 2)))
        expected[f"{scorer}/kept"] = np.array([kept])
        expected[f"{scorer}/error"] = np.array([error])
    return expected


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


def scorers_of(hooked):
    return SCORERS if hasattr(getattr(hooked.model, "model", None), "rotary_emb") else SCORERS[:-1]


def margins(hooked, ids, scorers):
    """Least distance of the last kept score and the first removed one: float32 must not turn them."""
    eager, least = Eager(hooked, ids), np.inf
    for scorer in scorers:
        if scorer == "streaming_llm":
            continue
        for ratio in RATIOS:
            for layer in range(hooked.layers):
                scores = -np.sort(-cache_scores(hooked, scorer, layer, ids, eager.weights[layer],
                                                eager.keys[layer][:, :CONTEXT], eager.values[layer][:, :CONTEXT],
                                                ratio), -1)
                count = int(CONTEXT * (1 - ratio))
                least = min(least, (scores[:, count - 1] - scores[:, count]).min())
    return least


def check(program, name, hooked, texts, cached, folder):
    tokens, output, model = folder / "tokens.json", folder / "out.ask.h5", folder / "model"
    tokens.write_text(json.dumps(texts[:1]))
    ask(program, "sinks", model, output, "--tokens", tokens, "--epsilon", str(EPSILON))
    compare(f"{name}, sinks", expected_sinks(hooked, texts[0]), read(output, "sinks"), WEIGHT_TOLERANCE)
    tokens.write_text(json.dumps(texts))
    ask(program, "corpus", model, output, "--tokens", tokens)
    compare(f"{name}, corpus", expected_corpus(hooked, texts), read(output, "corpus"), WEIGHT_TOLERANCE)
    tokens.write_text(json.dumps([cached]))
    scorers = scorers_of(hooked)
    ask(program, "cache", model, output, "--tokens", tokens, "--context", str(CONTEXT), "--scorers", ",".join(scorers),
        "--ratios", ",".join(map(str, RATIOS)), "--window", str(WINDOW), "--kernel", str(KERNEL), "--sink", str(SINK),
        "--future", str(FUTURE))
    compare(f"{name}, cache", expected_cache(hooked, cached, scorers), read(output, "cache"), CACHE_TOLERANCE)


def self_check(name, hooked, texts, cached):
    sinks = expected_sinks(hooked, texts[0])
    assert np.allclose(sinks["column_mass"][..., 0], Eager(hooked, texts[0]).weights[..., 0].mean(-1))
    assert np.all(sinks["entropy_row_mean_without_first_column"] <= np.log(len(texts[0]) - 1))
    corpus = expected_corpus(hooked, texts[:1])
    assert np.allclose(corpus["pattern_entropy"], sinks["entropy_row_mean"][0])
    assert np.all(corpus["qk_distance_variance"] > 0)
    cache = expected_cache(hooked, cached, scorers_of(hooked))
    assert all(np.all(one >= 0) for key, one in cache.items() if key.endswith("error"))
    assert margins(hooked, cached, scorers_of(hooked)) > 2e-5, "another seed: scores are too close"
    print(f"{name}: references agree with themselves")


def main():
    generator = torch.Generator().manual_seed(5)
    texts = [torch.randint(3, 61, (length,), generator=generator).tolist() for length in (11, 17, 23, 14)]
    # A seed whose scores are far enough apart for float32: see margins().
    cached = torch.randint(3, 61, (23,), generator=torch.Generator().manual_seed(7)).tolist()
    run_cases(check, self_check, texts, cached)


if __name__ == "__main__":
    main()
