#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Golden values for the reference attention: numpy float64, pair by pair, written from the specification.

    python3 attention_numpy.py            writes data/attention_numpy.json
    python3 attention_numpy.py --check    compares the committed file with a fresh run

Inputs are not stored: both sides draw them from the same linear congruential generator (see draw()), in the order
query, key, value, each [batch, heads, length, size] row by row. Options that the program keeps in float32 (biases,
slopes, sink logits) are chosen exact in it. Infinity is written "inf", NaN null.
"""
import json
import math
import pathlib
import sys

import numpy as np

DATA = pathlib.Path(__file__).resolve().parent / "data"
NAN = float("nan")


class Generator:
    """x <- 1664525 x + 1013904223 mod 2^32; the top bits become a number in [-1, 1) that its type holds exactly."""

    def __init__(self, seed, bits):
        self.state, self.bits = seed, bits

    def draw(self, *shape):
        values = np.empty(int(np.prod(shape)))
        for n in range(values.size):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            values[n] = (self.state >> (32 - self.bits)) / 2.0 ** (self.bits - 1) - 1.0
        return values.reshape(shape)


def edges():
    outer = [8.0 * 10.0 ** (k / 16.0) for k in range(51)]
    inner = [-8.0 + 0.25 * k for k in range(1, 64)]
    return [-math.inf] + [-e for e in reversed(outer)] + inner + outer + [math.inf]


def pair_allowed(case, b, h, i, j):
    rule = case["rule"]
    position = i + rule.get("query_offset", 0)
    if i >= rule.get("query_length", [case["queries"]] * case["batch"])[b]:
        return False
    if j < rule.get("key_begin", [0] * case["batch"])[b]:
        return False
    if j >= rule.get("key_length", [case["keys"]] * case["batch"])[b]:
        return False
    if rule.get("causal", True) and j > position:
        return False
    left, right = rule.get("window_left", -1), rule.get("window_right", -1)
    if left >= 0 and not (position - j <= left or j < rule.get("first_keys", 0)):
        return False
    if right >= 0 and not j - position <= right:
        return False
    size = rule.get("block_size", 0)
    if size > 0:
        own = j // size == position // size
        return bool(own or rule["block_visible"][b][h][j // size])
    return True


def pair_score(case, h, i, j, q, k):
    rule = case["rule"]
    relative = j - (i + rule.get("query_offset", 0))
    s = rule.get("scale", 1.0) * float(np.dot(q, k))
    if "slopes" in rule:
        s -= rule["slopes"][h] * (-relative)
    if "distance_bias" in rule:
        row = rule["distance_bias"][h]
        column = relative + rule.get("bias_origin", 0)
        if 0 <= column < len(row):
            s += row[column]
        elif rule.get("beyond_table", "clamp") == "clamp":
            s += row[0] if column < 0 else row[-1]
    cap = rule.get("soft_cap", 0.0)
    return cap * math.tanh(s / cap) if cap > 0 else s


def softmax_row(scores, sink):
    """(row constant, weights, share of the sink) of the allowed scores of one row."""
    top = max(scores + ([sink] if sink is not None else []))
    total = math.fsum(math.exp(s - top) for s in scores) + (math.exp(sink - top) if sink is not None else 0.0)
    constant = top + math.log(total)
    return constant, [math.exp(s - constant) for s in scores], math.exp(sink - constant) if sink is not None else 0.0


def sigmoid_row(scores, sink):
    return 0.0, [1 / (1 + math.exp(-s)) for s in scores], 0.0


def sparsemax_row(scores, sink):
    """The threshold by bisection on sum of max(s - t, 0) = 1, not by sorting: another way than the program's."""
    every = scores + ([sink] if sink is not None else [])
    low, high = max(every) - 1.0, max(every)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if math.fsum(max(s - middle, 0.0) for s in every) >= 1.0:
            low = middle
        else:
            high = middle
    support = [s for s in every if s > high]
    threshold = (math.fsum(support) - 1.0) / len(support) if support else low
    return threshold, [max(s - threshold, 0.0) for s in scores], max(sink - threshold, 0.0) if sink is not None else 0.0


def entmax_row(scores, sink):
    """A = max((s - t) / 2, 0)^2 (Peters et al. 2019, alpha = 1.5), the threshold by bisection on the sum being 1."""
    every = scores + ([sink] if sink is not None else [])
    weigh = lambda s, t: max(0.5 * (s - t), 0.0) ** 2
    low, high = max(every) - 2.0, max(every)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if math.fsum(weigh(s, middle) for s in every) >= 1.0:
            low = middle
        else:
            high = middle
    return low, [weigh(s, low) for s in scores], weigh(sink, low) if sink is not None else 0.0


def elastic_row(rule, h, scores):
    """max(p + tau / n, 0) of a softmax p of n keys (Lazy Attention, Eq. 5), or with tau alone."""
    constant, weights, _ = softmax_row(scores, None)
    tau = rule["offsets"][h]
    offset = tau if rule.get("offset_form") == "constant" else tau / len(scores)
    return constant, [max(p + offset, 0.0) for p in weights]


def taylor_row(case, scores, squares):
    """(row constant, weights) of 1 + s + t2; squares: sum over c of (q_c k_c)^2 for each key of the row."""
    name, scale = case["rule"]["normaliser"], case["rule"].get("scale", 1.0)
    second = [0.5 * scale**2 * u for u in squares] if "diagonal" in name else [0.5 * s * s for s in scores]
    if name.endswith("per_order"):
        sums = len(scores), math.fsum(scores), math.fsum(second)
        return sums[2], [1 / sums[0] + s / sums[1] + t / sums[2] for s, t in zip(scores, second)]
    terms = [1.0 + s + t for s, t in zip(scores, second)]
    total = math.fsum(terms)
    return total, [t / total for t in terms]


def build(case):
    """Scores (NaN where not allowed), weights, constants and sink shares, [B, H, Lq, Lk] and [B, H, Lq]."""
    batch, heads, queries, keys = case["batch"], case["heads"], case["queries"], case["keys"]
    rule = case["rule"]
    source = Generator(case["seed"], 8 if case.get("bfloat16") else 24)
    q = source.draw(batch, heads, queries, case["key_size"]) * case.get("amplitude", 2.0)
    k = source.draw(batch, case["kv_heads"], keys, case["key_size"]) * case.get("amplitude", 2.0)
    v = source.draw(batch, case["kv_heads"], keys, case["value_size"])
    score = np.full((batch, heads, queries, keys), NAN)
    weight = np.zeros_like(score)
    constant = np.full((batch, heads, queries), math.inf)
    share = np.zeros_like(constant)
    row_of = {"sparsemax": sparsemax_row, "entmax": entmax_row, "sigmoid": sigmoid_row}.get(
        rule.get("normaliser"), softmax_row)
    for b, h, i in np.ndindex(batch, heads, queries):
        group = h // (heads // case["kv_heads"])
        seen = [j for j in range(keys) if pair_allowed(case, b, h, i, j)]
        if not seen:
            continue
        row = [pair_score(case, h, i, j, q[b, h, i], k[b, group, j]) for j in seen]
        sink = rule["sink_logits"][h] if "sink_logits" in rule else None
        if rule.get("normaliser", "").startswith("taylor"):
            squares = [math.fsum((q[b, h, i] * k[b, group, j]) ** 2) for j in seen]
            constant[b, h, i], weights = taylor_row(case, row, squares)
        elif rule.get("normaliser") == "elastic":
            constant[b, h, i], weights = elastic_row(rule, h, row)
        else:
            constant[b, h, i], weights, share[b, h, i] = row_of(row, sink)
        score[b, h, i, seen] = row
        weight[b, h, i, seen] = weights
    output = np.zeros((batch, heads, queries, case["value_size"]))
    for h in range(heads):
        output[:, h] = weight[:, h] @ v[:, h // (heads // case["kv_heads"])]
    return score, weight, constant, share, output


def divide(a, b):
    return a / b if b else NAN


def measure(case):
    batch, heads, queries, keys = case["batch"], case["heads"], case["queries"], case["keys"]
    rule, request = case["rule"], case.get("request", {})
    causal, offset = rule.get("causal", True), rule.get("query_offset", 0)
    distances = request.get("local_distances", [0, 1, 2, 3])
    size = request.get("thumbnail_size", 128)
    step = request.get("histogram_row_step", 0) or (1 if queries <= 1024 else 8)
    tokens = request.get("tokens")
    score, weight, constant, share, output = build(case)
    allowed = ~np.isnan(score)
    bin_edges = edges()

    names = ["entropy", "entropy_row_mean", "concentration", "sink", "density", "sparsity", "zero_fraction",
             "mean_distance", "duplicate", "induction", "virtual_sink", "score_minimum", "score_maximum", "score_mean",
             "score_variance"]
    out = {name: np.full((batch, heads), NAN) for name in names}
    out["output"], out["row_constant"] = output, constant
    out["local_focus"] = np.full((batch, heads, len(distances)), NAN)
    out["head_diversity"] = np.zeros(batch)
    out["score_above"] = np.zeros((batch, heads, 3))
    out["column_mass"] = np.full((batch, heads, keys), NAN)
    out["histogram"] = np.zeros((batch, heads, 166), dtype=np.int64)
    rows_t, columns_t = min(size, queries), min(size, keys)
    out["thumbnail_mean"] = np.zeros((batch, heads, rows_t, columns_t))
    out["thumbnail_maximum"] = np.zeros((batch, heads, rows_t, columns_t))
    for name in ["query_entropy", "query_square_sum", "query_sink", "query_mean_distance"]:
        out[name] = np.zeros((batch, heads, queries))

    for b in range(batch):
        begin = rule.get("key_begin", [0] * batch)[b]
        end = rule.get("key_length", [keys] * batch)[b]
        length = rule.get("query_length", [queries] * batch)[b]
        for h in range(heads):
            A, S, M = weight[b, h], score[b, h], allowed[b, h]
            rows = [i for i in range(queries) if M[i].any()]
            L = len(rows)
            for i in range(queries):
                p = i + offset
                negative = any(a < 0 for a in A[i])
                out["query_entropy"][b, h, i] = NAN if negative else -math.fsum(a * math.log(a) for a in A[i] if a > 0)
                out["query_square_sum"][b, h, i] = math.fsum(a * a for a in A[i])
                out["query_sink"][b, h, i] = A[i, begin] if begin < end else 0.0
                out["query_mean_distance"][b, h, i] = math.fsum(A[i, j] * (p - j) for j in range(keys))
            out["entropy"][b, h] = math.fsum(out["query_entropy"][b, h])
            out["entropy_row_mean"][b, h] = divide(out["entropy"][b, h], L)
            out["concentration"][b, h] = math.sqrt(math.fsum(out["query_square_sum"][b, h]))
            out["sink"][b, h] = divide(math.fsum(out["query_sink"][b, h]), L)
            rest = math.fsum(A[i, j] for i in rows for j in range(keys) if j != begin)
            out["density"][b, h] = divide(rest, L)
            out["sparsity"][b, h] = 1.0 - out["density"][b, h] - out["sink"][b, h]
            out["zero_fraction"][b, h] = divide(np.count_nonzero(M & (A < 2.0**-126)), np.count_nonzero(M))
            out["mean_distance"][b, h] = divide(math.fsum(out["query_mean_distance"][b, h]), L)
            if "sink_logits" in rule:
                out["virtual_sink"][b, h] = divide(math.fsum(share[b, h, i] for i in rows), L)
            if not case.get("request", {}).get("cross", False):
                for n, distance in enumerate(distances):
                    with_key = [i for i in rows if begin <= i + offset - distance < end]
                    total = math.fsum(A[i, i + offset - distance] for i in with_key)
                    out["local_focus"][b, h, n] = divide(total, len(with_key))
            if tokens is not None:
                t = tokens[b]
                duplicate = induction = 0.0
                for i in rows:
                    p = i + offset
                    if not begin <= p < end:
                        continue
                    for j in range(begin, end):
                        if j < p and t[j] == t[p]:
                            duplicate += A[i, j]
                        if begin < j <= p and t[j - 1] == t[p]:
                            induction += A[i, j]
                out["duplicate"][b, h], out["induction"][b, h] = divide(duplicate, L), divide(induction, L)
            for j in range(begin, end):
                column = [A[i, j] for i in rows if not causal or i + offset >= j]
                out["column_mass"][b, h, j] = divide(math.fsum(column), len(column))
            values = S[M]
            if values.size:
                out["score_minimum"][b, h], out["score_maximum"][b, h] = values.min(), values.max()
                mean = math.fsum(values) / values.size
                out["score_mean"][b, h] = mean
                out["score_variance"][b, h] = math.fsum((values - mean) ** 2) / values.size
                out["score_above"][b, h] = [np.count_nonzero(np.abs(values) > 10.0**k) for k in (1, 2, 3)]
            sampled = S[step - 1::step][M[step - 1::step]]
            out["histogram"][b, h] = [np.count_nonzero((sampled >= low) & (sampled < high))
                                      for low, high in zip(bin_edges, bin_edges[1:])]
            cells = [[[] for _ in range(columns_t)] for _ in range(rows_t)]
            for i in range(length):
                for j in range(begin, end):
                    cells[i * rows_t // length][(j - begin) * columns_t // (end - begin)].append(A[i, j])
            for r, c in np.ndindex(rows_t, columns_t):
                if cells[r][c]:
                    out["thumbnail_mean"][b, h, r, c] = math.fsum(cells[r][c]) / len(cells[r][c])
                    out["thumbnail_maximum"][b, h, r, c] = max(cells[r][c])
        if heads > 1:
            pairs = [(i, j) for i in range(queries) if allowed[b, :, i].any() for j in range(begin, end)
                     if not causal or j <= i + offset]
            total = math.fsum(np.std([weight[b, h, i, j] for h in range(heads)], ddof=1) for i, j in pairs)
            out["head_diversity"][b] = divide(total, len(pairs))
    return out


def t5_buckets(bidirectional, buckets, max_distance, reach):
    """T5's bucket of every relative position (key - query) from -reach to reach (Raffel et al. 2020)."""
    result = []
    for relative in range(-reach, reach + 1):
        n, bucket, distance = buckets, 0, max(-relative, 0)
        if bidirectional:
            n //= 2
            bucket, distance = (n if relative > 0 else 0), abs(relative)
        exact = n // 2
        if distance < exact:
            result.append(bucket + distance)
            continue
        ratio = np.log(np.float32(distance) / np.float32(exact)) / np.float32(math.log(max_distance / exact))
        result.append(bucket + min(exact + int(ratio * np.float32(n - exact)), n - 1))
    return result


def case(name, batch, heads, kv_heads, queries, keys, key_size, value_size, rule=None, **more):
    return dict(name=name, batch=batch, heads=heads, kv_heads=kv_heads, queries=queries, keys=keys, key_size=key_size,
                value_size=value_size, rule=rule or {}, **more)


def cases():
    words = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8, 4]]
    bias = [[0.25 * ((3 * h + 5 * n) % 7) - 0.75 for n in range(7)] for h in range(3)]
    learned = [[0.25 * ((5 * h + 3 * n) % 9) - 1.0 for n in range(5)] for h in range(4)]
    visible = [[[(b + h + n * n) % 3 == 0 for n in range(4)] for h in range(2)] for b in range(2)]
    return [
        case("one token, one head", 1, 1, 1, 1, 1, 3, 2, {}, seed=1),
        case("causal self-attention, grouped heads, tokens", 2, 4, 2, 11, 11, 6, 5, {"scale": 0.5}, seed=2,
             request={"tokens": words, "local_distances": [0, 1, 2, 3, 10, 11], "thumbnail_size": 4}),
        case("encoder with right padding", 2, 3, 3, 9, 9, 4, 3,
             {"causal": False, "query_length": [9, 5], "key_length": [9, 5]}, seed=3,
             request={"thumbnail_size": 7}),
        case("causal with left padding", 2, 2, 1, 9, 9, 5, 4, {"key_begin": [0, 4]}, seed=4,
             request={"thumbnail_size": 5, "tokens": [row[:9] for row in words]}),
        case("cross-attention", 1, 3, 1, 5, 11, 4, 6, {"causal": False, "scale": 0.75}, seed=5,
             request={"thumbnail_size": 4, "cross": True}),
        case("queries that start later than keys", 1, 2, 2, 4, 9, 3, 3, {"query_offset": 5}, seed=6,
             request={"tokens": [words[0][:9]]}),
        case("window, first keys, sink logits", 1, 2, 1, 12, 12, 4, 3,
             {"window_left": 3, "first_keys": 2, "sink_logits": [0.5, -1.25]}, seed=7, request={"thumbnail_size": 6}),
        case("slopes and soft cap", 1, 4, 4, 10, 10, 4, 2,
             {"slopes": [0.5, 0.25, 0.125, 0.0625], "soft_cap": 3.0, "scale": 2.0}, seed=8,
             request={"thumbnail_size": 3}),
        case("distance bias clamped, window on both sides", 1, 3, 3, 10, 10, 4, 2,
             {"causal": False, "distance_bias": bias, "bias_origin": 3, "window_left": 5, "window_right": 6}, seed=9,
             request={"thumbnail_size": 3}),
        case("distance bias that ends in zero", 1, 3, 1, 10, 10, 4, 2,
             {"distance_bias": bias, "bias_origin": 5, "beyond_table": "zero"}, seed=10,
             request={"thumbnail_size": 3}),
        case("key blocks seen or not", 2, 2, 2, 14, 14, 4, 2,
             {"block_size": 4, "block_visible": visible}, seed=11, request={"thumbnail_size": 4}),
        case("sparsemax", 1, 3, 1, 11, 11, 4, 3, {"normaliser": "sparsemax", "scale": 0.6}, seed=12,
             request={"tokens": [words[0]], "thumbnail_size": 4}),
        case("sparsemax with sink logits and a window", 1, 2, 2, 9, 9, 4, 3,
             {"normaliser": "sparsemax", "sink_logits": [0.375, 1.5], "window_left": 2}, seed=13,
             request={"thumbnail_size": 4}),
        case("sigmoid with a bias of all scores, padding", 2, 3, 1, 9, 9, 4, 3,
             {"normaliser": "sigmoid", "distance_bias": [[-1.5], [0.25], [-4.0]], "query_length": [9, 6],
              "key_length": [9, 6], "key_begin": [0, 1]},
             seed=23, request={"tokens": [row[:9] for row in words], "thumbnail_size": 4}),
        case("sharp sigmoid in a window, vanishing weights", 1, 2, 2, 10, 10, 4, 2,
             {"normaliser": "sigmoid", "scale": 60.0, "window_left": 4, "first_keys": 1}, seed=24,
             request={"thumbnail_size": 3}),
        case("bfloat16 and scores in the thousands", 1, 2, 1, 9, 9, 8, 3, {"scale": 150.0}, seed=14, bfloat16=True,
             request={"thumbnail_size": 4}),
        case("rows without a key", 2, 2, 2, 8, 6, 4, 3,
             {"query_offset": -3, "window_left": 2, "key_length": [3, 0]}, seed=15, request={"thumbnail_size": 4}),
        case("histogram of every eighth row", 1, 1, 1, 1030, 1030, 2, 1, {"scale": 4.0}, seed=16,
             request={"thumbnail_size": 3}, keep=["histogram", "entropy", "score_mean", "thumbnail_mean"]),
        case("histogram of every third row", 1, 1, 1, 10, 10, 2, 1, {"scale": 4.0}, seed=17,
             request={"histogram_row_step": 3}, keep=["histogram"]),
        case("cross-attention with as many queries as keys, both padded", 2, 2, 2, 7, 7, 4, 3,
             {"causal": False, "query_length": [7, 4], "key_length": [5, 7]}, seed=18,
             request={"thumbnail_size": 3, "cross": True}),
        case("Taylor weights, a window and right padding", 2, 2, 1, 9, 9, 4, 3,
             {"normaliser": "taylor", "scale": 0.5, "window_left": 5, "query_length": [9, 6], "key_length": [9, 6]},
             seed=19, request={"tokens": [row[:9] for row in words], "thumbnail_size": 4}),
        case("Taylor weights of a diagonal second order, some negative", 1, 3, 1, 8, 8, 4, 3,
             {"normaliser": "taylor_diagonal", "scale": 0.5}, seed=20, request={"thumbnail_size": 3}),
        case("Taylor weights by order, left padding", 2, 2, 2, 8, 8, 4, 3,
             {"normaliser": "taylor_per_order", "scale": 0.5, "key_begin": [0, 2]}, seed=21,
             request={"thumbnail_size": 3}),
        case("Taylor weights by order of a diagonal second order", 1, 2, 1, 8, 8, 4, 3,
             {"normaliser": "taylor_diagonal_per_order", "scale": 0.5}, seed=22, request={"thumbnail_size": 3}),
        case("elastic softmax of Lazy Attention, a bias over few distances", 1, 4, 2, 11, 11, 4, 3,
             {"normaliser": "elastic", "offsets": [-1.0, -0.5, 0.25, -4.0], "scale": 0.6, "distance_bias": learned,
              "bias_origin": 4, "beyond_table": "zero"}, seed=23, request={"tokens": [words[0]], "thumbnail_size": 4}),
        case("elastic softmax, padding and a window", 2, 2, 1, 12, 12, 4, 3,
             {"normaliser": "elastic", "offsets": [-1.0, 0.5], "window_left": 4, "first_keys": 2, "query_length": [12, 9],
              "key_begin": [0, 1], "key_length": [12, 9]}, seed=24, request={"thumbnail_size": 5}),
        case("elastic softmax with constant offsets, queries that start later", 1, 3, 1, 5, 13, 4, 3,
             {"normaliser": "elastic", "offsets": [-0.125, 0.0, 0.0625], "offset_form": "constant", "query_offset": 8},
             seed=25, request={"thumbnail_size": 4}),
        case("entmax", 1, 3, 1, 11, 11, 4, 3, {"normaliser": "entmax", "scale": 0.9}, seed=26,
             request={"tokens": [words[0]], "thumbnail_size": 4}),
        case("entmax with sink logits and a window", 1, 2, 2, 9, 9, 4, 3,
             {"normaliser": "entmax", "sink_logits": [0.375, 2.5], "window_left": 3}, seed=27,
             request={"thumbnail_size": 4}),
    ]


def plain(name, array):
    single = name in ("output", "column_mass", "row_constant") or name.startswith(("thumbnail", "query"))
    if name == "histogram":
        return [[int(n), int(array.flat[n])] for n in np.flatnonzero(array)]

    def number(x):
        if math.isnan(x):
            return None
        if math.isinf(x):
            return "inf"
        return int(x) if x == int(x) and abs(x) < 2**53 else float(f"{x:.9g}") if single else float(x)

    return [number(float(x)) for x in array.flat]


def golden():
    document = {"edges": [x if math.isfinite(x) else None for x in edges()], "buckets": [], "cases": []}
    for bidirectional, buckets, max_distance in [(True, 32, 128), (False, 32, 128), (True, 8, 20), (False, 6, 40)]:
        document["buckets"].append({"bidirectional": bidirectional, "buckets": buckets, "max_distance": max_distance,
                                    "reach": 150, "bucket": t5_buckets(bidirectional, buckets, max_distance, 150)})
    for c in cases():
        found = measure(c)
        keep = c.pop("keep", list(found))
        document["cases"].append({**c, "expected": {name: plain(name, found[name]) for name in keep}})
    return document


def main():
    document, path = golden(), DATA / "attention_numpy.json"
    if "--check" in sys.argv:
        same = json.loads(path.read_text()) == json.loads(json.dumps(document))
        print("attention_numpy.json is what this script makes" if same else "attention_numpy.json differs")
        return 0 if same else 1
    lines = [json.dumps(c, separators=(",", ":")) for c in document["cases"]]
    head = {name: document[name] for name in ("edges", "buckets")}
    path.write_text(json.dumps(head, separators=(",", ":"))[:-1] + ',"cases":[\n' + ",\n".join(lines) + "\n]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
