#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden gradients of attention from a state: PyTorch's autograd through a loop over tokens in float64, which finite
differences of the same sums in numpy confirm for every input number.

    python3 recurrent_gradients.py            writes data/recurrent_gradients.json
    python3 recurrent_gradients.py --check    compares the committed file with a fresh run

The loss is the inner product of the output and a given gradient. Inputs are not stored: both sides draw them from the
generator of attention_numpy.py, in the order query, key, value, write, log decay, output gradient, each
[batch, heads, length, size] row by row; keys are halved, w = (1 + x) / 2, g = (x - 1) / 4.
"""
import json
import pathlib
import sys

import numpy as np
import torch

from attention_numpy import Generator

DATA = pathlib.Path(__file__).resolve().parent / "data"
NAMES = ["query", "key", "value", "write", "log_decay", "kept"]


def case(name, shape, kept=(), **rule):
    batch, heads, key_heads, length, key_size, value_size = shape
    rule = {"scale": 0.75, "delta": True, "decay": "head", "chunk_size": 0, "decays_dropped": True,
            "reads_own_chunk": True, "length": [length] * batch} | rule
    chunks = -(-length // rule["chunk_size"]) if rule["chunk_size"] else 0
    return {"name": name, "batch": batch, "heads": heads, "key_heads": key_heads, "length": length,
            "key_size": key_size, "value_size": value_size, "rule": rule, "chunks": chunks,
            "kept": [kept[n % len(kept)] for n in range(batch * heads * chunks)]}


def cases():
    mixed = (0.0, 1.0, 0.625, 1.0, 0.0, 0.25, 0.0)
    yield case("gated delta rule over two pieces", (1, 2, 1, 65, 3, 2))
    yield case("delta rule without decay", (1, 2, 2, 11, 2, 3), decay="none")
    yield case("gated sum", (1, 3, 1, 9, 3, 2), delta=False)
    yield case("sum without decay, padded", (2, 1, 1, 7, 2, 2), delta=False, decay="none", length=[5, 0])
    yield case("decay of each number of the key", (1, 2, 1, 12, 3, 2), decay="channel")
    yield case("gated linear attention in chunks", (1, 2, 1, 14, 3, 2), mixed, delta=False, decay="channel",
               chunk_size=4)
    yield case("chunks", (1, 2, 1, 18, 3, 2), mixed, chunk_size=4)
    yield case("chunks that fall back to the state itself", (1, 2, 1, 18, 3, 2), mixed, chunk_size=4,
               decays_dropped=False)
    yield case("chunks that read earlier ones only", (1, 2, 1, 18, 3, 2), mixed, chunk_size=4, reads_own_chunk=False)
    yield case("both", (1, 2, 1, 18, 3, 2), mixed, chunk_size=4, reads_own_chunk=False, decays_dropped=False)
    yield case("chunks without decay, padded", (2, 1, 1, 13, 2, 2), mixed, chunk_size=4, decay="none", length=[13, 6])
    yield case("chunks of two pieces", (1, 1, 1, 140, 2, 2), (0.0, 0.75, 1.0), chunk_size=67)
    yield case("chunks of two pieces, earlier ones only", (1, 1, 1, 140, 2, 2), (0.5, 0.0, 1.0), chunk_size=67,
               reads_own_chunk=False)


def inputs_of(c):
    draw = Generator(7, 12).draw
    b, h, g, n, k, v = (c[x] for x in ("batch", "heads", "key_heads", "length", "key_size", "value_size"))
    decays = {"none": 0, "head": 1, "channel": k}[c["rule"]["decay"]]
    return {"query": draw(b, g, n, k), "key": draw(b, g, n, k) / 2.0, "value": draw(b, h, n, v),
            "write": (1.0 + draw(b, h, n, 1)) / 2.0, "log_decay": (draw(b, h, n, decays) - 1.0) / 4.0,
            "kept": np.array(c["kept"]).reshape(b, h, c["chunks"])}, draw(b, h, n, v)


def loss(c, x, outer, exp, zeros):
    """The sum, by the formula of kernels/recurrent.h: of numpy's arrays or PyTorch's tensors."""
    rule, total = c["rule"], 0.0
    for b in range(c["batch"]):
        for h in range(c["heads"]):
            group = h // (c["heads"] // c["key_heads"])
            state = start = zeros(c["key_size"], c["value_size"])
            since = zeros(c["key_size"])
            for t in range(rule["length"][b]):
                query, key = x["query"][b, group, t], x["key"][b, group, t]
                if rule["decay"] != "none":
                    g = x["log_decay"][b, h, t] + zeros(c["key_size"])
                    since = since + g
                    state = exp(g)[:, None] * state
                error = x["value"][b, h, t]
                if rule["delta"]:
                    error = error - key @ state
                state = state + key[:, None] * (x["write"][b, h, t] * error)[None, :]
                seen = state if rule["reads_own_chunk"] else exp(since)[:, None] * start
                total = total + rule["scale"] * ((query @ seen) * outer[b, h, t]).sum()
                if rule["chunk_size"] and (t + 1) % rule["chunk_size"] == 0:
                    base = exp(since)[:, None] * start if rule["decays_dropped"] else start
                    state = base + x["kept"][b, h, t // rule["chunk_size"]] * (state - base)
                    start, since = state, zeros(c["key_size"])
    return total


def by_autograd(c, arrays, outer):
    x = {name: torch.tensor(a, requires_grad=True) for name, a in arrays.items()}
    value = loss(c, x, torch.tensor(outer), torch.exp, lambda *s: torch.zeros(*s, dtype=torch.float64))
    if not value.requires_grad:
        raise SystemExit(f"{c['name']}: the loss depends on nothing")
    value.backward()
    return {name: torch.zeros_like(t).numpy() if t.grad is None else t.grad.numpy() for name, t in x.items()}


def by_differences(c, arrays, outer, step=1e-4):
    """Central differences of second and fourth order: the error is step^4."""
    found = {}
    for name, a in arrays.items():
        found[name] = np.zeros_like(a)
        for n in range(a.size):
            def moved(by):
                other = a.copy()
                other.flat[n] += by
                return loss(c, arrays | {name: other}, outer, np.exp, lambda *s: np.zeros(s))
            near, far = moved(step) - moved(-step), moved(2.0 * step) - moved(-2.0 * step)
            found[name].flat[n] = (8.0 * near - far) / (12.0 * step)
    return found


def document():
    out = []
    for c in cases():
        arrays, outer = inputs_of(c)
        gradients, differences = by_autograd(c, arrays, outer), by_differences(c, arrays, outer)
        for name in NAMES:
            np.testing.assert_allclose(gradients[name], differences[name], rtol=0.0, atol=1e-9,
                                       err_msg=f"{c['name']}: {name}")
        out.append(c | {"gradients": {name: [float(f"{x:.9g}") for x in gradients[name].flat] for name in NAMES}})
    return "[\n" + ",\n".join(json.dumps(c) for c in out) + "\n]\n"


def main():
    text, path = document(), DATA / "recurrent_gradients.json"
    if "--check" not in sys.argv[1:]:
        path.write_text(text)
        return
    for fresh, stored in zip(json.loads(text), json.loads(path.read_text()), strict=True):
        for name in NAMES:
            np.testing.assert_allclose(fresh["gradients"][name], stored["gradients"][name], rtol=1e-8, atol=1e-12)
            fresh["gradients"][name] = stored["gradients"][name]
        assert fresh == stored, fresh["name"]


if __name__ == "__main__":
    main()
