#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attention from a state by its formulas in float64 on small inputs: recurrent_numpy.json.

Outputs, states, the implicit matrix and its statistics, for the delta rule and without it, decay of every kind, and
NAtS-L's chunks. The matrix comes from the recurrence alone: outputs are linear in the values, so its column j is the
output where the value of token j is 1 and all others 0.
"""

import itertools
import json
import pathlib

import numpy as np

HEADS, KEY_HEADS, TOKENS, KEY_SIZE, VALUE_SIZE, SCALE, CHUNK = 2, 1, 11, 3, 2, 0.75, 4


def walk(rule, query, key, value, write, log_decay, kept, state=None):
    """One head. query, key [tokens, dk], value [tokens, dv], write [tokens], log_decay [tokens, dk], kept [chunks]."""
    state = np.zeros((key.shape[1], value.shape[1])) if state is None else state
    outputs, start, faded = [], state, np.zeros(key.shape[1])
    for t in range(len(query)):
        state = np.exp(log_decay[t])[:, None] * state
        faded = faded + log_decay[t]
        new = write[t] * (value[t] - (key[t] @ state if rule["delta"] else 0.0))
        state = state + np.outer(key[t], new)
        chunks = rule["chunk_size"] > 0
        read = np.exp(faded)[:, None] * start if chunks and not rule["reads_own_chunk"] else state
        outputs.append(SCALE * query[t] @ read)
        if chunks and (t + 1) % rule["chunk_size"] == 0:
            before = np.exp(faded)[:, None] * start if rule["decays_dropped"] else start
            state = before + kept[t // rule["chunk_size"]] * (state - before)
            start, faded = state, np.zeros_like(faded)
    return np.array(outputs), state, start, faded


def statistics(matrix):
    sums = np.abs(matrix).sum(axis=1)
    shares = np.abs(matrix)[sums > 0] / sums[sums > 0, None]
    entropy = -np.sum(np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0), axis=1)
    return entropy.sum(), entropy.mean(), np.sqrt((shares**2).sum())


def case(random, name, **rule):
    rule = {"delta": True, "decay": "head", "chunk_size": 0, "decays_dropped": True, "reads_own_chunk": True} | rule

    def draw(*shape):
        """Exact in few digits, and in bfloat16."""
        return random.integers(-48, 49, size=shape) / 64.0

    query, key = draw(KEY_HEADS, TOKENS, KEY_SIZE), draw(KEY_HEADS, TOKENS, KEY_SIZE)
    value, write = draw(HEADS, TOKENS, VALUE_SIZE), np.abs(draw(HEADS, TOKENS)) + 0.125
    decays = {"none": 0, "head": 1, "channel": KEY_SIZE}[rule["decay"]]
    log_decay = -np.abs(draw(HEADS, TOKENS, decays))
    chunks = -(-TOKENS // rule["chunk_size"]) if rule["chunk_size"] else 0
    kept = np.array([[0.5, 0.0, 1.0], [1.0, 0.25, 0.0]])[:, :chunks]
    expected = {}
    for h in range(HEADS):
        g = np.broadcast_to(log_decay[h], (TOKENS, KEY_SIZE)) if decays else np.zeros((TOKENS, KEY_SIZE))
        parts = query[h * KEY_HEADS // HEADS], key[h * KEY_HEADS // HEADS]
        outputs, state, start, faded = walk(rule, *parts, value[h], write[h], g, kept[h])
        matrix = walk(rule, *parts, np.eye(TOKENS), write[h], g, kept[h])[0]
        assert np.allclose(matrix @ value[h], outputs, atol=1e-13)
        assert np.allclose(matrix, np.tril(matrix), atol=0.0)
        entropy, mean, concentration = statistics(matrix)
        found = {"output": outputs, "state": state, "implicit": matrix, "entropy": entropy, "entropy_row_mean": mean,
                 "concentration": concentration}
        if chunks:
            found |= {"start": start} | ({"decay": faded[:decays]} if decays else {})
        for field, numbers in found.items():
            expected.setdefault(field, []).extend(float(f"{x:.10g}") for x in np.ravel(numbers))
    inputs = {"query": query, "key": key, "value": value, "write": write, "log_decay": log_decay, "kept": kept}
    return {"name": name, "rule": rule, "expected": expected} | {n: x.ravel().tolist() for n, x in inputs.items()}


def main():
    random = np.random.default_rng(25)
    cases = [case(random, f"{'delta' if delta else 'added'}, decay {decay}", delta=delta, decay=decay)
             for delta, decay in itertools.product((True, False), ("none", "head", "channel"))]
    cases += [case(random, f"chunks, decay {decay}, {dropped}, {own}", decay=decay, chunk_size=CHUNK,
                   decays_dropped=dropped, reads_own_chunk=own)
              for decay, dropped, own in itertools.product(("none", "head", "channel"), (True, False), (True, False))]
    shape = {"heads": HEADS, "key_heads": KEY_HEADS, "tokens": TOKENS, "key_size": KEY_SIZE,
             "value_size": VALUE_SIZE, "scale": SCALE}
    path = pathlib.Path(__file__).parent / "data/recurrent_numpy.json"
    with open(path, "w") as file:
        file.write(json.dumps(shape | {"cases": cases}, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
