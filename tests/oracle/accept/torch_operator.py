#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slow test of torch.ops.headscope.attention as Python users meet it: python3 torch_operator.py PATH_TO_LIB.

Compares output, statistics and gradients with eager torch in float64, Meta and FakeTensor with real shapes, bfloat16,
torch.library.opcheck and torch.compile. Needs torch of the version that the library was built against.
Exit status 0 when everything agrees, else 1 with one line for each difference.
"""
import math
import sys

import torch

FAILURES = []


def check(condition, what):
    if not condition:
        FAILURES.append(what)


def close(found, expected, what, factor=1.0):
    """float32 arithmetic against float64: relative to the largest expected value, times what sums of many terms add."""
    found, expected = found.double(), expected.double()
    if found.shape != expected.shape:
        FAILURES.append(f"{what}: shape {tuple(found.shape)}, expected {tuple(expected.shape)}")
        return
    both = torch.isfinite(expected) & torch.isfinite(found)
    check(torch.equal(torch.isfinite(expected), torch.isfinite(found)), f"{what}: not finite in the same places")
    scale = expected[both].abs().max().clamp_min(1e-3) if both.any() else torch.tensor(1.0)
    error = (found - expected)[both].abs().max() if both.any() else torch.tensor(0.0)
    tolerance = 64 * factor * torch.finfo(torch.float32).eps * scale
    check(bool(error <= tolerance), f"{what}: differs by {float(error):.3g}, allowed {float(tolerance):.3g}")


def eager(q, k, v, *, scale=None, causal=True, query_offset=0, window_left=-1, first_keys=0, slopes=None, soft_cap=0.0,
          sink_logits=None, key_length=None):
    """Weights, scores, allowed pairs and output in float64."""
    q, k, v = q.double(), k.double(), v.double()
    repeat = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    i = (torch.arange(q.shape[2]) + query_offset)[:, None]
    j = torch.arange(k.shape[2])[None, :]
    s = q @ k.transpose(-1, -2) * scale
    if slopes is not None:
        s = s - slopes.double()[None, :, None, None] * (i - j)
    if soft_cap > 0:
        s = soft_cap * torch.tanh(s / soft_cap)
    allowed = torch.ones_like(i + j, dtype=torch.bool)
    if causal:
        allowed = allowed & (j <= i)
    if window_left >= 0:
        allowed = allowed & ((i - j <= window_left) | (j < first_keys))
    allowed = allowed.expand(s.shape)
    if key_length is not None:
        allowed = allowed & (j < key_length[:, None, None, None])
    masked = s.masked_fill(~allowed, -math.inf)
    if sink_logits is not None:
        masked = torch.cat([masked, sink_logits.double()[None, :, None, None].expand(*s.shape[:3], 1)], -1)
    a = torch.softmax(masked, -1)[..., : s.shape[-1]]
    return a, s, allowed, a @ v


def compare_with_eager(name, q, k, v, **options):
    output, found = torch.ops.headscope.attention(q, k, v, statistics=True, per_query=True, **options)
    a, s, allowed, expected = eager(q, k, v, **options)
    queries, keys, heads = a.shape[2], a.shape[3], a.shape[1]
    i = (torch.arange(queries) + options.get("query_offset", 0))[:, None]
    j = torch.arange(keys)[None, :]
    causal = options.get("causal", True)
    pairs = (j <= i) if causal else torch.ones_like(j <= i)
    close(output, expected, f"{name}: output", factor=1 if q.dtype == torch.float32 else 2**9)
    entropy = -torch.xlogy(a, a).sum(-1)
    close(found["query_entropy"], entropy, f"{name}: query_entropy")
    close(found["entropy"], entropy.sum(-1), f"{name}: entropy")
    close(found["entropy_row_mean"], entropy.mean(-1), f"{name}: entropy_row_mean")
    close(found["concentration"], a.square().sum((-1, -2)).sqrt(), f"{name}: concentration")
    close(found["sink"], a[..., 0].mean(-1), f"{name}: sink")
    close(found["density"], a[..., 1:].sum(-1).mean(-1), f"{name}: density")
    close(found["mean_distance"], (a * (i - j)).sum(-1).mean(-1), f"{name}: mean_distance", factor=4)
    close(found["sparsity"], 1 - a.sum(-1).mean(-1), f"{name}: sparsity", factor=1e3)
    if causal and queries == keys:
        focus = [a.diagonal(-n, -2, -1).mean(-1) for n in range(4)]
        close(found["local_focus"], torch.stack(focus, -1), f"{name}: local_focus")
    if heads > 1:
        spread = (a.std(1) * pairs).sum((-1, -2)) / pairs.sum()
        close(found["head_diversity"], spread, f"{name}: head_diversity")
    close(found["column_mass"], (a.sum(2) / pairs.sum(0)), f"{name}: column_mass")
    inside = s.masked_fill(~allowed, math.nan)
    close(found["score_mean"], inside.nanmean((-1, -2)), f"{name}: score_mean", factor=4)
    close(found["score_maximum"], s.masked_fill(~allowed, -math.inf).amax((-1, -2)), f"{name}: score_maximum", factor=4)
    close(found["score_minimum"], s.masked_fill(~allowed, math.inf).amin((-1, -2)), f"{name}: score_minimum", factor=4)
    number = allowed.sum((-1, -2)).double()
    variance = ((s - inside.nanmean((-1, -2))[..., None, None]).square() * allowed).sum((-1, -2)) / number
    close(found["score_variance"], variance, f"{name}: score_variance", factor=4)
    check(torch.equal(found["histogram"].sum(-1).double(), number), f"{name}: histogram does not count every pair")
    if "sink_logits" in options:
        close(found["virtual_sink"], 1 - a.sum(-1).mean(-1), f"{name}: virtual_sink", factor=4)
    return found


def shapes_and_types(tree):
    output, statistics = tree
    return (tuple(output.shape), output.dtype, {n: (tuple(t.shape), t.dtype) for n, t in statistics.items()})


def gradients(function, tensors, factors):
    leaves = [t.detach().clone().requires_grad_() for t in tensors]
    output = function(*leaves)
    return torch.autograd.grad((output * factors.to(output.dtype)).sum(), leaves)


def check_gradients(attention, q, k, v):
    """dQ, dK, dV against eager autograd in float64; opcheck and torch.compile with gradients; the refusals."""
    factors = torch.randn(*q.shape[:3], v.shape[-1]).bfloat16().float()
    cases = {"plain": {}, "encoder": dict(causal=False, scale=0.3), "sharp": dict(scale=2.0),
             "window and first keys": dict(window_left=7, first_keys=2), "soft cap": dict(soft_cap=2.0),
             "slopes": dict(slopes=torch.tensor([2.0**-n for n in range(1, 7)])),
             "sink logits": dict(sink_logits=torch.linspace(-1, 3, 6)), "later queries": dict(query_offset=5),
             "padding": dict(key_length=torch.tensor([65, 40]))}
    for name, options in cases.items():
        expected = gradients(lambda *t: eager(*t, **options)[3], [t.double() for t in (q, k, v)], factors.double())
        for kind, factor in ((torch.float32, 1), (torch.bfloat16, 2**16)):
            tensors = [t.to(kind) for t in (q, k, v)]
            if kind == torch.bfloat16:
                expected = gradients(lambda *t: eager(*t, **options)[3], [t.double() for t in tensors], factors.double())
            found = gradients(lambda *t: attention(*t, **options)[0], tensors, factors)
            for letter, one, other in zip("QKV", found, expected):
                check(one.dtype == kind, f"{name}: d{letter} of another type than {letter}")
                close(one, other, f"{name}, {kind}: d{letter}", factor=4 * factor)
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    for options in ({}, {"window_left": 9}):
        result = torch.library.opcheck(attention.default, leaves, options, raise_exception=False)
        for test, outcome in result.items():
            check(outcome == "SUCCESS", f"opcheck with gradients, {test}: {outcome}")

    def part(*tensors):
        return 2 * attention(*tensors)[0]

    compiled = torch.compile(part, backend="aot_eager")
    for one, other in zip(gradients(compiled, (q, k, v), factors), gradients(part, (q, k, v), factors)):
        check(torch.equal(one, other), "torch.compile gives other gradients")
    with torch.no_grad():
        check(not attention(*leaves)[0].requires_grad, "recorded under no_grad")
    # Scores of eager's, projected onto the simplex by its definition: a sort, under torch's own autograd.
    def sparse(q, k, v):
        s = eager(q, k, v, scale=2.0)[1]
        forbidden = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
        z = s.masked_fill(forbidden, -1e30)
        ordered = z.sort(-1, descending=True).values
        rank = torch.arange(1, z.shape[-1] + 1, dtype=z.dtype)
        support = (1 + rank * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
        threshold = (ordered.cumsum(-1).gather(-1, support - 1) - 1) / support
        return (z - threshold).clamp_min(0) @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)

    expected = gradients(sparse, [t.double() for t in (q, k, v)], factors.double())
    found = gradients(lambda *t: attention(*t, normaliser="sparsemax", scale=2.0)[0], (q, k, v), factors)
    for letter, one, other in zip("QKV", found, expected):
        close(one, other, f"sparsemax: d{letter}", factor=4)
    # Elastic-Softmax: an offset over the number of keys, and what is below 0 cut off.
    offsets = torch.linspace(-2, 0.5, q.shape[1])

    def elastic(q, k, v):
        shares, rows = eager(q, k, v, scale=2.0)[0], torch.arange(1, q.shape[2] + 1)[:, None]
        weights = torch.relu(shares + offsets.double()[:, None, None] / rows).tril()
        return weights @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)

    expected = gradients(elastic, [t.double() for t in (q, k, v)], factors.double())
    found = gradients(lambda *t: attention(*t, normaliser="elastic", offsets=offsets, scale=2.0)[0], (q, k, v), factors)
    for letter, one, other in zip("QKV", found, expected):
        close(one, other, f"elastic: d{letter}", factor=4)

    refused = {"normaliser": dict(normaliser="taylor_diagonal"), "slopes": dict(slopes=torch.zeros(6, requires_grad=True))}
    for name, options in refused.items():
        try:
            attention(*leaves, **options)
            FAILURES.append(f"no error where a gradient is wanted: {name}")
        except NotImplementedError as error:
            check("expected" in str(error), f"unclear error under autograd: {error}")
    try:
        torch.autograd.grad(attention(*leaves)[0].sum(), leaves, create_graph=True)
        FAILURES.append("no error where a second derivative is wanted")
    except NotImplementedError as error:
        check("second derivative" in str(error), f"unclear error for a second derivative: {error}")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    torch.ops.load_library(sys.argv[1])
    attention = torch.ops.headscope.attention
    torch.manual_seed(20)

    def tensors(batch, heads, groups, queries, keys, size, value_size):
        return (torch.randn(batch, heads, queries, size), torch.randn(batch, groups, keys, size),
                torch.randn(batch, groups, keys, value_size))

    q, k, v = tensors(2, 6, 2, 65, 65, 40, 24)
    compare_with_eager("causal, grouped heads", q, k, v)
    compare_with_eager("encoder", q, k, v, causal=False, scale=0.3)
    compare_with_eager("sharp", q, k, v, scale=4.0)
    compare_with_eager("window and first keys", q, k, v, window_left=7, first_keys=2)
    compare_with_eager("slopes", q, k, v, slopes=torch.tensor([2.0**-n for n in range(1, 7)]))
    compare_with_eager("soft cap", q, k, v, soft_cap=2.0)
    compare_with_eager("sink logits", q, k, v, sink_logits=torch.linspace(-1, 3, 6))
    compare_with_eager("decoding", q[:, :, -3:].clone(), k, v, query_offset=62)
    compare_with_eager("cross-attention", *tensors(1, 3, 3, 17, 130, 16, 16), causal=False)

    # Not every option has an eager twin above: a pattern that is known, and tokens that all repeat.
    tokens = torch.zeros(2, 65, dtype=torch.int32)
    measured = attention(q, k, v, statistics=True, tokens=tokens)[1]
    a = eager(q, k, v)[0]
    close(measured["duplicate"], (a.sum(-1) - a.diagonal(0, -2, -1)).mean(-1), "duplicate")
    close(measured["induction"], a[..., 1:].sum(-1).mean(-1), "induction")
    weights = attention(q, k, v, statistics=True, normaliser="sparsemax", scale=2.0)[1]
    check(bool((weights["zero_fraction"] > 0.3).all()), "sparsemax leaves few zeros")
    close(weights["density"] + weights["sink"], torch.ones(2, 6), "sparsemax rows sum to 1")
    weights = attention(q, k, v, statistics=True, normaliser="entmax", scale=2.0)[1]
    check(bool((weights["zero_fraction"] > 0.2).all()), "entmax leaves few zeros")
    close(weights["density"] + weights["sink"], torch.ones(2, 6), "entmax rows sum to 1")

    halves = [t.bfloat16() for t in (q, k, v)]
    check(attention(*halves)[0].dtype == torch.bfloat16, "bfloat16 in, another type out")
    compare_with_eager("bfloat16", *halves)
    everything = dict(statistics=True, per_query=True, tokens=tokens, sink_logits=torch.zeros(6), thumbnail_size=9)
    for options in ({}, everything):
        real = shapes_and_types(attention(q, k, v, **options))
        meta = attention(*(t.to("meta") for t in (q, k, v)), **options)
        check(meta[0].is_meta and shapes_and_types(meta) == real, "Meta returns other shapes or types than the CPU")
        result = torch.library.opcheck(attention.default, (q, k, v), options, raise_exception=False)
        for test, outcome in result.items():
            check(outcome == "SUCCESS", f"opcheck {test}: {outcome}")

    check_gradients(attention, q, k, v)
    for options in ({"normaliser": "hardmax"}, {"slopes": torch.ones(5)}, {"window_left": -7}):
        try:
            attention(q, k, v, **options)
            FAILURES.append(f"no error for {options}")
        except ValueError as error:
            check("expected" in str(error) and "found" in str(error), f"unclear error for {options}: {error}")

    def doubled(*inputs):
        output, statistics = attention(*inputs, statistics=True)
        return 2 * output, statistics["entropy"] + 1

    # A dictionary breaks the graph (fullgraph=True would refuse); the numbers stay.
    compiled = torch.compile(doubled, backend="aot_eager")(q, k, v)
    for found, expected in zip(compiled, doubled(q, k, v)):
        check(torch.equal(found, expected), "torch.compile gives other numbers")

    results = []
    for threads in (1, 2, 5, 0):
        torch.ops.headscope.set_threads(threads)
        results.append(attention(q, k, v, statistics=True, per_query=True))
    for output, statistics in results[1:]:
        check(torch.equal(output, results[0][0]), "the output depends on the number of threads")
        for name, value in statistics.items():
            same = torch.equal(value.nan_to_num(), results[0][1][name].nan_to_num())
            check(same, f"{name} depends on the number of threads")

    for failure in FAILURES:
        print("FAILED", failure)
    print("torch operator:", "failed" if FAILURES else "all checks passed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
