# SPDX-License-Identifier: GPL-3.0-or-later
"""Every number of an analysis file, from dense attention weights and scores, in float64 numpy.

An oracle: written from the definitions (docs/file-formats.md and the papers' formulas) alone, slow and obvious, with
no line in common with the kernels. Shapes: weights and scores [H, Lq, Lk], `allowed` [Lq, Lk] or, where heads differ,
[H, Lq, Lk] (bool, what the model's own mask lets through), tokens [L]. Rows are queries, columns keys, both counted from 0.
"""

import numpy as np

LOCAL_DISTANCES = (0, 1, 2, 3)
SMALLEST_NORMAL_FLOAT32 = 2.0**-126
OUTLIER_BOUNDS = (10.0, 100.0, 1000.0)
THUMBNAIL_SIZE = 128


def histogram_edges():
    """The 167 edges: -inf, -8 * 10^(k/16) for k = 50..0, -7.75 to 7.75 by 0.25, 8 * 10^(k/16) for k = 0..50, inf."""
    logarithmic = 8.0 * 10.0 ** (np.arange(51) / 16.0)
    linear = np.arange(-31, 32) * 0.25
    return np.concatenate([[-np.inf], -logarithmic[::-1], linear, logarithmic, [np.inf]])


def default_row_step(queries):
    return 1 if queries <= 1024 else 8


def sampled_rows(queries, row_step):
    """Rows that enter the histogram: every one, or those with i mod step = step - 1."""
    return np.arange(row_step - 1, queries, row_step)


def live_queries(allowed):
    """Queries that see at least one key: the L of all formulas."""
    return int(allowed.any(axis=-1).sum(axis=-1).max())


def allowed_of(values, allowed):
    """Of each head's [Lq, Lk] those that are allowed, one after the other."""
    return [one[mask] for one, mask in zip(values, np.broadcast_to(allowed, values.shape))]


def entropy(weights):
    """- sum_ij A log A in nats, with 0 log 0 = 0; NaN where a weight is negative. [H]"""
    logarithm = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    return np.where((weights < 0).any(axis=(1, 2)), np.nan, -(weights * logarithm).sum(axis=(1, 2)))


def head_diversity(weights, allowed, causal):
    """Mean over the pairs of the standard deviation over heads (divisor H - 1); one number per layer."""
    heads = weights.shape[0]
    if heads == 1:
        return 0.0
    deviation = weights.std(axis=0, ddof=1)
    queries = live_queries(allowed)
    if causal:
        lower = np.tril(np.ones(deviation.shape, dtype=bool))
        return 2.0 / (queries * (queries + 1)) * deviation[lower].sum()
    return deviation.sum() / (queries * weights.shape[2])


def local_focus(weights, allowed, distances=LOCAL_DISTANCES):
    """(1 / (L - N)) sum of A_{i, i-N}; NaN where no query has such a key. [H, distances]"""
    heads = weights.shape[0]
    queries = live_queries(allowed)
    result = np.full((heads, len(distances)), np.nan)
    for n, distance in enumerate(distances):
        if queries > distance:
            diagonal = np.diagonal(weights, offset=-distance, axis1=1, axis2=2)
            result[:, n] = diagonal.sum(axis=1) / (queries - distance)
    return result


def column_mass(weights, allowed, causal):
    """Mean weight that key j gets from the queries that come no earlier (encoders: from all). [H, Lk]"""
    queries = live_queries(allowed)
    total = weights.sum(axis=1)
    if not causal:
        return total / queries
    return total / (queries - np.arange(weights.shape[2]))


def token_pattern(weights, tokens, pattern, queries):
    """(1 / L) sum of A over the pairs of a pattern of equal tokens. [H]"""
    length = len(tokens)
    i, j = np.arange(length)[:, None], np.arange(length)[None, :]
    if pattern == "duplicate":
        pairs = (j < i) & (tokens[None, :] == tokens[:, None])
    else:
        before = np.concatenate([[np.iinfo(np.int64).min], tokens[:-1]])
        pairs = (j >= 1) & (j <= i) & (before[None, :] == tokens[:, None])
    return np.where(pairs, weights, 0.0).sum(axis=(1, 2)) / queries


def implicit_shares(weights):
    """|A| over its rows' sums, of an implicit matrix; 0 where a row sums to 0."""
    sizes = np.abs(np.asarray(weights, dtype=np.float64))
    total = sizes.sum(axis=2, keepdims=True)
    return np.divide(sizes, total, out=np.zeros_like(sizes), where=total > 0)


def implicit_indicators(weights):
    """What of /indicators a site with an implicit matrix [H, L, L] has."""
    shares = implicit_shares(weights)
    rows = (shares.sum(axis=2) > 0).sum(axis=1)
    return {"entropy": entropy(shares), "entropy_row_mean": entropy(shares) / np.maximum(rows, 1),
            "concentration": np.sqrt((shares**2).sum(axis=(1, 2)))}


def indicators(weights, allowed, causal, tokens=None, cross=False, virtual_sink=None):
    """All of /indicators for one sequence and site, by name. `virtual_sink` [H, Lq]: the shares of sink logits."""
    weights = np.asarray(weights, dtype=np.float64)
    heads, length, keys = weights.shape
    queries = live_queries(allowed)
    i, j = np.arange(length)[:, None], np.arange(keys)[None, :]
    result = {}
    result["entropy"] = entropy(weights)
    result["entropy_row_mean"] = result["entropy"] / queries
    result["concentration"] = np.sqrt((weights**2).sum(axis=(1, 2)))
    result["head_diversity"] = head_diversity(weights, allowed, causal and not cross)
    result["sink"] = weights[:, :, 0].sum(axis=1) / queries
    result["local_focus"] = local_focus(weights, allowed)
    if cross:
        result["local_focus"][:] = np.nan
    result["density"] = weights[:, :, 1:].sum(axis=(1, 2)) / queries
    result["sparsity"] = 1.0 - result["density"] - result["sink"]
    small = (weights < SMALLEST_NORMAL_FLOAT32) & allowed
    result["zero_fraction"] = small.sum(axis=(1, 2)) / allowed.sum(axis=(-2, -1))
    result["mean_distance"] = (weights * (i - j)).sum(axis=(1, 2)) / queries
    result["virtual_sink"] = np.full(heads, np.nan) if virtual_sink is None else virtual_sink.sum(axis=1) / queries
    for pattern in ("duplicate", "induction"):
        known = tokens is not None and not cross
        result[pattern] = (
            token_pattern(weights, np.asarray(tokens, dtype=np.int64), pattern, queries) if known else np.full(heads, np.nan)
        )
    result["column_mass"] = column_mass(weights, allowed, causal and not cross)
    return result


def score_statistics(scores, allowed):
    """/logits/{minimum, maximum, mean, variance, above} over all allowed pairs. [H], above [H, 3]"""
    heads = allowed_of(np.asarray(scores, dtype=np.float64), allowed)
    return {
        "minimum": np.array([values.min() for values in heads]),
        "maximum": np.array([values.max() for values in heads]),
        "mean": np.array([values.mean() for values in heads]),
        "variance": np.array([values.var() for values in heads]),
        "above": np.array([[(np.abs(values) > bound).sum() for bound in OUTLIER_BOUNDS] for values in heads]),
    }


def histogram(scores, allowed, row_step=None):
    """/logits/counts: allowed scores of the sampled rows; bin b holds edge[b] <= s < edge[b + 1]. [H, 166]"""
    heads, queries, _ = scores.shape
    rows = sampled_rows(queries, row_step or default_row_step(queries))
    edges = histogram_edges()
    counts = np.zeros((heads, len(edges) - 1), dtype=np.int64)
    for h in range(heads):
        values = scores[h, rows][np.broadcast_to(allowed, scores.shape)[h, rows]]
        index = np.searchsorted(edges, values, side="right") - 1
        counts[h] = np.bincount(index, minlength=len(edges) - 1)
    return counts


def thumbnails(weights, size=THUMBNAIL_SIZE):
    """Block means and maxima; cell (i, j) belongs to block (i * rows // Lq, j * columns // Lk). [H, rows, columns] each"""
    heads, queries, keys = weights.shape
    rows, columns = min(size, queries), min(size, keys)
    row_of, column_of = np.arange(queries) * rows // queries, np.arange(keys) * columns // keys
    total = np.zeros((heads, rows, columns))
    maximum = np.zeros((heads, rows, columns))
    index = np.ix_(np.arange(heads), row_of, column_of)
    np.add.at(total, index, weights)
    np.maximum.at(maximum, index, weights)
    cells = np.bincount(row_of)[:, None] * np.bincount(column_of)[None, :]
    return {"mean": total / cells, "maximum": maximum}


def row_constants(scores, allowed, sink_logits=None):
    """The natural-log normaliser of softmax: A = exp(s - c), with the sink logits [H] in it. [H, Lq]"""
    masked = np.where(allowed, scores, -np.inf)
    if sink_logits is not None:
        column = np.broadcast_to(sink_logits[:, None, None], (*masked.shape[:2], 1))
        masked = np.concatenate([masked, column], axis=2)
    top = masked.max(axis=2)
    return top + np.log(np.exp(masked - top[:, :, None]).sum(axis=2))


def vector_statistics(vectors):
    """L2 norm and variance (divisor size - 1) over the last axis, as /states holds them."""
    vectors = np.asarray(vectors, dtype=np.float64)
    return {"norm": np.sqrt((vectors**2).sum(axis=-1)), "variance": vectors.var(axis=-1, ddof=1)}


def next_token_loss(logits, tokens):
    """Next-token loss in nats at each position, NaN at the last. [L]"""
    logits = np.asarray(logits, dtype=np.float64)
    top = logits.max(axis=1)
    normaliser = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
    loss = np.full(len(tokens), np.nan)
    positions = np.arange(len(tokens) - 1)
    loss[:-1] = normaliser[:-1] - logits[positions, np.asarray(tokens)[1:]]
    return loss
