#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rollout and norm-based attention by their definitions, in float64, on small random maps: rollout_numpy.json.

Rollout (Abnar and Zuidema 2020, arXiv 2005.00928): the mean of the heads' weights, half of it and half of the identity,
rows divided by their sums, multiplied layer by layer. Norms (Kobayashi et al. 2020, arXiv 2004.10102): for each pair the
vector weight * (value @ rows of the output projection that read the head), its length, and that of the sum over heads.
"""

import json
import pathlib

import numpy as np

HEADS, GROUPS, SIZE, WIDTH, TOKENS, LAYERS = 4, 2, 3, 5, 7, 3


def attention(rule, query, key):
    """Weights [heads, tokens, tokens] and row constants."""
    scores = rule["scale"] * query @ np.repeat(key, HEADS // GROUPS, axis=0).transpose(0, 2, 1)
    row, column = np.arange(TOKENS)[:, None], np.arange(TOKENS)[None, :]
    allowed = np.ones((TOKENS, TOKENS), dtype=bool)
    if rule["causal"]:
        allowed &= column <= row
    if rule["window_left"] >= 0:
        allowed &= row - column <= rule["window_left"]
    scores = np.where(allowed, scores, -np.inf)
    total = np.exp(scores).sum(axis=-1)
    if rule["sink_logits"]:
        total += np.exp(rule["sink_logits"])[:, None]
    return np.exp(scores) / total[..., None], np.log(total)


def rollout(weights):
    """After each layer."""
    result, all_layers = np.eye(TOKENS), []
    for layer in weights:
        mixed = 0.5 * layer.mean(axis=0) + 0.5 * np.eye(TOKENS)
        result = mixed / mixed.sum(axis=-1, keepdims=True) @ result
        all_layers.append(result)
    return all_layers


def norms(weights, value, output):
    """Of each head, [heads, tokens, tokens], and of the layer; the inner products of what heads give for a key."""
    given = np.stack([np.repeat(value, HEADS // GROUPS, axis=0)[h] @ output[:, h * SIZE:(h + 1) * SIZE].T
                      for h in range(HEADS)])
    vectors = weights[..., None] * given[:, None]
    products = np.einsum("gjd,hjd->jgh", given, given)
    layer = np.linalg.norm(vectors.sum(axis=0), axis=-1)
    by_products = np.sqrt(np.einsum("gij,jgh,hij->ij", weights, products, weights))
    assert np.allclose(layer, by_products, atol=1e-12)
    return np.linalg.norm(vectors, axis=-1), layer, products


def case(random, **changes):
    rule = {"scale": 0.6, "causal": True, "window_left": -1, "sink_logits": []} | changes

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32).astype(np.float64)

    layers, weights = [], []
    for _ in range(LAYERS):
        query, key, value, output = draw(HEADS, TOKENS, SIZE), draw(GROUPS, TOKENS, SIZE), draw(GROUPS, TOKENS, SIZE), draw(WIDTH, HEADS * SIZE)
        weight, constant = attention(rule, query, key)
        weights.append(weight)
        by_head, layer, products = norms(weight, value, output)
        layers.append({"query": query, "key": key, "value": value, "output": output, "row_constant": constant,
                       "head_norms": by_head, "layer_norms": layer, "products": products})
    for layer, result in zip(layers, rollout(weights)):
        layer["rollout"] = result
    rounded = [{name: [float(f"{number:.9g}") for number in values.ravel()] for name, values in layer.items()}
               for layer in layers]
    return {"rule": rule, "layers": rounded}


def main():
    random = np.random.default_rng(20)
    cases = [case(random), case(random, window_left=2),
             case(random, causal=False, sink_logits=[0.5, -1.0, 2.0, 0.0])]
    sizes = {"heads": HEADS, "groups": GROUPS, "size": SIZE, "width": WIDTH, "tokens": TOKENS}
    path = pathlib.Path(__file__).parent / "data/rollout_numpy.json"
    path.write_text(json.dumps(sizes | {"cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
